#include "backends/file/fork_guard.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support.hpp"

namespace dlock::file::test {
namespace {

int open_null() {
  return ::open("/dev/null", O_RDONLY | O_CLOEXEC);
}
bool is_open(int fd) {
  return ::fcntl(fd, F_GETFD) >= 0;
}

TEST(ForkGuard, Child_ClosesItsDescriptors) {
  GuardedFd guarded = GuardedFd::open(open_null);
  const int plain = open_null();
  ASSERT_TRUE(guarded);
  EXPECT_EQ(in_child([&] {
              require(!is_open(guarded.get()), "the guarded descriptor is open");
              require(is_open(plain), "a stranger's descriptor is closed");
              GuardedFd own = GuardedFd::open(open_null);
              const std::string problem = in_child([&] { require(!is_open(own.get()), "open in the grandchild"); });
              require(problem.empty(), problem);
              require(is_open(own.get()), "closed in the child");
            }),
            "");
  EXPECT_TRUE(is_open(guarded.get()));
  ::close(plain);
}

TEST(ForkGuard, ReusedDescriptor_IsNotClosedInAChild) {
  GuardedFd guarded = GuardedFd::open(open_null);
  EXPECT_EQ(in_child([&] {
              const int number = guarded.get();
              require(::dup2(0, number) == number, "dup2");
              guarded.reset();
              require(is_open(number), "a stranger's descriptor was closed");
              ::close(number);
              // Not even when the number is guarded anew, by the child's own client.
              GuardedFd other = GuardedFd::open([&] { return ::fcntl(0, F_DUPFD_CLOEXEC, number); });
              require(other.get() == number, "another number");
              GuardedFd stale = std::move(guarded);
              stale.reset();
              require(is_open(number), "the child's own descriptor was closed");
            }),
            "");
}

TEST(ForkGuard, ForkDuringOpen_OpensAgain) {
  int opened = 0;
  GuardedFd warm_up = GuardedFd::open(open_null);  // installs the handlers
  GuardedFd guarded = GuardedFd::open([&] {
    const int fd = open_null();
    if (++opened == 1) {
      const pid_t child = ::fork();
      if (child == 0) ::_exit(0);
      ::waitpid(child, nullptr, 0);
    }
    return fd;
  });
  EXPECT_EQ(opened, 2);
  EXPECT_TRUE(is_open(guarded.get()));
}

}  // namespace
}  // namespace dlock::file::test

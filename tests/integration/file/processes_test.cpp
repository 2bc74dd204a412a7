// Several processes: children that are killed, and children that inherit.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <functional>
#include <string>

#include "tests/unit/file/member.hpp"
#include "tests/unit/file/support.hpp"

namespace dlock::file::test {
namespace {

using namespace std::chrono_literals;

constexpr LockKind all_kinds[] = {LockKind::lock, LockKind::read_write, LockKind::semaphore, LockKind::election};

// A forked child. Its constructor returns when the body has called its argument, which stays until the child is killed.
class Child {
 public:
  using Stay = std::function<void()>;

  explicit Child(const std::function<void(const Stay& stay)>& body) {
    std::array<int, 2> ends{};
    EXPECT_EQ(::pipe(ends.data()), 0);
    pid_ = ::fork();
    if (pid_ == 0) {
      ::alarm(static_cast<unsigned>(hang_guard.count()));
      body([&] {
        (void)!::write(ends[1], "x", 1);
        ::pause();
      });
      ::_exit(0);
    }
    ::close(ends[1]);
    char done = 0;
    EXPECT_EQ(::read(ends[0], &done, 1), 1) << "it failed";
    ::close(ends[0]);
  }
  void kill() const {
    EXPECT_EQ(::kill(pid_, SIGKILL), 0);
    EXPECT_EQ(::waitpid(pid_, nullptr, 0), pid_);
  }

 private:
  pid_t pid_ = 0;
};

class FileProcessesTest : public testing::Test {
 protected:
  [[nodiscard]] Child holder(LockKind kind, Mode mode = Mode::exclusive) const {
    return Child([&](const Child::Stay& stay) {
      Member member(scratch_.locks(), kind, 2);
      if (member.enter(mode)) stay();
    });
  }

  ScratchDirectory scratch_;
};

TEST_F(FileProcessesTest, HolderKilled_LockIsFreeBeforeAnyPoll) {
  for (const LockKind kind : all_kinds) {
    for (int i = 0; i < 5; ++i) {
      Member waiting(scratch_.locks(), kind, 1);
      const Child child = holder(kind);
      Waiting waiter(waiting);
      EXPECT_FALSE(waiter.in());
      child.kill();
      EXPECT_TRUE(waiting.advance_until(200ms, [&] { return waiter.in(); })) << to_string(kind);
    }
  }
}

TEST_F(FileProcessesTest, WaitingWriterKilled_ReadersEnter) {
  Member reading(scratch_.locks(), LockKind::read_write, 1);
  EXPECT_TRUE(reading.read());
  const Child writer([&](const Child::Stay& stay) {
    Member member(scratch_.locks(), LockKind::read_write, 2);
    const Waiting waiting(member);
    stay();
  });
  EXPECT_FALSE(reading.read());
  Waiting reader(reading, Mode::shared);
  EXPECT_FALSE(reader.in());
  writer.kill();
  EXPECT_TRUE(reading.advance_until(200ms, [&] { return reader.in(); }));
}

TEST_F(FileProcessesTest, ForkedChild_DoesNotKeepItsParentsLock) {
  for (const LockKind kind : all_kinds) {
    std::array<int, 2> link{};  // the parent's child lives until the other end is closed
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, link.data()), 0);
    const Child parent([&](const Child::Stay& stay) {
      ::close(link[0]);
      Member member(scratch_.locks(), kind, 2);
      if (!member.enter()) return;
      char none = 0;
      if (::fork() != 0) return stay();
      (void)!::read(link[1], &none, 1);
    });
    ::close(link[1]);
    Member other(scratch_.locks(), kind, 1);
    EXPECT_FALSE(other.enter());
    parent.kill();
    EXPECT_TRUE(other.advance_until(hang_guard, [&] { return other.enter(); })) << to_string(kind);
    char none = 0;
    EXPECT_EQ(::recv(link[0], &none, 1, MSG_DONTWAIT), -1) << "the child did not live long enough to prove anything";
    ::close(link[0]);
  }
}

}  // namespace
}  // namespace dlock::file::test

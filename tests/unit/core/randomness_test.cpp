// A kernel that gives no random numbers, as under a filter of system calls (seccomp).
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <memory>
#include <set>
#include <string>
#include <system_error>

#include <dlock/client.hpp>
#include <dlock/error.hpp>

#include "tests/support/forked_child.hpp"
#include "tests/support/simple_backend.hpp"

namespace dlock {
namespace {

// Only in a child: it lasts as long as the process.
void refuse_random_numbers() {
  std::array<sock_filter, 4> code{{BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
                                   BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getrandom, 0, 1),
                                   BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
                                   BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)}};
  sock_fprog program{code.size(), code.data()};
  ASSERT_EQ(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
  ASSERT_EQ(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program), 0);
}

TEST(RandomnessTest, AConnect_WithoutRandomNumbers_IsAnError) {
  EXPECT_EQ(test::ForkedChild::run([](test::ForkedChild& child) {
              refuse_random_numbers();
              try {
                (void)connect("simple://", {}, std::make_shared<test::SimpleService>()->factory());
                child.check(false);
              } catch (const Error& e) {
                child.check(e.code() == errc::unavailable);
              }
            }),
            "good");
}

TEST(RandomnessTest, AClient_WhoseKernelRefusesRandomNumbersLater_GoesOn) {
  EXPECT_EQ(test::ForkedChild::run([](test::ForkedChild& child) {
              const Client client = connect("simple://", {}, std::make_shared<test::SimpleService>()->factory());
              refuse_random_numbers();
              DistributedLock lock = client.make_lock("x");
              std::set<std::string> owners;
              constexpr int more_than_threads_keep = 100;
              for (int i = 0; i < more_than_threads_keep; ++i) owners.insert(lock.acquire().owner().to_string());
              child.check(owners.size() == more_than_threads_keep);
            }),
            "good");
}

}  // namespace
}  // namespace dlock

// Clients where the process is special: in a child made by fork(), under a kernel that gives no random numbers, and in
// the destructors of static objects.
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <optional>
#include <set>
#include <stop_token>
#include <system_error>
#include <thread>

#include <dlock/error.hpp>
#include <dlock/recursive_lock.hpp>

#include "tests/support/forked_child.hpp"
#include "tests/support/refusals.hpp"
#include "tests/support/sanitizers.hpp"
#include "tests/support/simple_backend.hpp"

// A child that starts an engine of its own is what one of these tests is about.
extern "C" const char* __tsan_default_options();
extern "C" const char* __tsan_default_options() {  // NOLINT(bugprone-reserved-identifier): TSan's name for it
  return "die_after_fork=0";
}

namespace dlock {
namespace {

// --- In a child made by fork() what the parent holds is the parent's business ---

using Child = test::ForkedChild;

class ForkTest : public testing::Test {
 protected:
  [[nodiscard]] Client make() { return connect("simple://", {.label = "test"}, service_->factory()); }
  std::shared_ptr<test::SimpleService> service_ = std::make_shared<test::SimpleService>();
  std::optional<Client> client_ = make();
};

TEST_F(ForkTest, ManualClockInTheChild_WaitsForNoEngine) {
  const auto clock = std::make_shared<ManualClock>();
  const Client client = connect("simple://", {.label = "test", .clock = clock}, service_->factory());
  const Lease lease = client.make_lock("x").acquire();
  EXPECT_EQ(Child::run([&](Child& child) {
              clock->advance(std::chrono::seconds(60));
              child.check(!lease.held());
            }),
            "good");
  EXPECT_TRUE(lease.held());
}

TEST_F(ForkTest, Child_HoldsNoLeaseAndGetsClosed) {
  DistributedLock lock = client_->make_lock("z");
  MultiLock locks = client_->make_multi_lock({"x", "y"});
  std::optional<MultiLease> leases = locks.acquire();
  Lease lease = client_->make_lock("w").acquire();
  EXPECT_EQ(Child::run([&](Child& child) {
              child.check(!leases->held() && !lease.held());
              child.check(!leases->lost().stop_requested() && !lease.lost().stop_requested());
              child.check(lease.name() == "w" && !lease.release());
              std::error_code ec;
              child.check(!locks.acquire({}, ec).has_value() && ec == errc::closed);
              child.check(!lock.acquire({}, ec).has_value() && ec == errc::closed);
              child.check(!lock.try_acquire({}, ec) && ec == errc::closed);
              child.check(test::thrown_by([&] { (void)client_->inspect("x"); }).code == errc::closed);
              int handlers = 0;
              locks.async_acquire({}, [&](std::error_code why, const MultiLease&) { handlers += why == errc::closed; });
              lock.async_acquire({}, [&](std::error_code why, const Lease&) { handlers += why == errc::closed; });
              leases->async_release([&](std::error_code, bool were_ours) { handlers += !were_ours; });
              lease.async_release([&](std::error_code, bool was_ours) { handlers += !was_ours; });
              child.check(handlers == 4);
              child.check(!leases->release());
              leases.reset();
              child.check(service_->held("x") && service_->held("y"));
            }),
            "good");
  EXPECT_TRUE(leases->held() && lease.held());
  EXPECT_TRUE(leases->release() && lease.release());
}

// Nor does the child touch the engine, which another thread may have been inside of at the fork.
TEST_F(ForkTest, CancellationInTheChild_DoesNotReachTheParent) {
  const Lease held = client_->make_lock("x").acquire();
  std::stop_source source;
  std::atomic<int> ended = 0;
  client_->make_lock("x").async_acquire({.cancel = source.get_token()},
                                        [&](std::error_code, const Lease&) { ++ended; });
  EXPECT_EQ(Child::run([&](Child& child) {
              source.request_stop();
              child.check(ended == 0);
            }),
            "good");
  EXPECT_EQ(client_->stats().waiting, 1U);
  source.request_stop();
  client_.reset();
  EXPECT_EQ(ended, 1);
}

TEST_F(ForkTest, DestructorsInTheChild_ReleaseNothing) {
  std::optional<DistributedLock> lock = client_->make_lock("x");
  lock->lock();
  std::optional<RecursiveLock> recursive(client_->make_lock("y"));
  recursive->lock();
  std::optional<Lease> outliving = client_->make_lock("z").acquire();
  EXPECT_EQ(Child::run([&](Child& child) {
              lock.reset();
              recursive.reset();
              client_.reset();
              child.check(!outliving->held());
              outliving.reset();
              child.check(service_->live_backends == 1);  // its destructor may send on the parent's connection
              child.check(service_->held("x") && service_->held("y") && service_->held("z"));
            }),
            "good");
  EXPECT_TRUE(lock->lease().held() && recursive->lease().held() && outliving->held());
}

TEST_F(ForkTest, ForkOfABusyEngine_DoesNotHangTheChild) {
  DistributedLock lock = client_->make_lock("x");
  std::atomic<bool> done = false;
  std::thread busy([&] {
    while (!done) (void)lock.acquire().release();
  });
  for (int round = 0; round < 20; ++round) {
    EXPECT_EQ(Child::run([&](Child& child) {
                std::error_code ec;
                child.check(!lock.acquire({}, ec).has_value());
                child.check(ec == errc::closed);
                client_.reset();
              }),
              "good");
  }
  done = true;
  busy.join();
}

// The thread is nearly always inside of one of these calls when its process forks.
TEST(ForkTestOfSchemes, Child_KnowsTheSchemesAndMayAddSome) {
  const BackendFactory factory = std::make_shared<test::SimpleService>()->factory();
  for (int i = 0; i < 200; ++i) register_backend("fork-test-" + std::to_string(i), factory);
  std::atomic<bool> done = false;
  std::thread busy;
  // The allocators of sanitizers are not made ready for a fork: where a thread is inside of one, the child hangs in it.
  if constexpr (!dlock::test::sanitized) {
    busy = std::thread([&] {
      for (int i = 200; !done; ++i) {
        (void)backends();
        if (i < 300) register_backend("fork-test-" + std::to_string(i), factory);
      }
    });
  }
  for (int round = 0; round < 20; ++round) {
    const std::string result = Child::run([&](Child& child) {
      const auto known = backends();
      child.check(std::find(known.begin(), known.end(), "fork-test-0") != known.end());
      register_backend("fork-test-child", factory);
      child.check(std::ranges::count(backends(), "fork-test-child") == 1);
    });
    EXPECT_EQ(result, "good");
    if (result != "good") break;
  }
  done = true;
  if (busy.joinable()) busy.join();
}

// --- A kernel that gives no random numbers, as under a filter of system calls (seccomp) ---

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

TEST(RandomnessTest, NoRandomNumbers_FailConnectAndNoLaterAcquire) {
  EXPECT_EQ(Child::run([](Child& child) {
              const auto factory = std::make_shared<test::SimpleService>()->factory();
              const Client client = connect("simple://", {}, factory);
              refuse_random_numbers();
              DistributedLock lock = client.make_lock("x");
              std::set<std::string> owners;
              constexpr int more_than_threads_keep = 100;
              for (int i = 0; i < more_than_threads_keep; ++i) owners.insert(lock.acquire().owner().to_string());
              child.check(owners.size() == more_than_threads_keep);
              const Failure why = test::thrown_by([&] { (void)connect("simple://", {}, factory); });
              child.check(why.code == errc::unavailable);
            }),
            "good");
}

// --- Destructors of static objects, which may run when all function-local statics have been destroyed ---

// Made before main() and so before all that is made at its first use, and destroyed after it.
struct AtTheEnd {
  std::function<void()> action;
  ~AtTheEnd() {
    if (action) action();
  }
};
AtTheEnd at_the_end;

void check(bool ok, int number) {
  if (!ok) _exit(number);
}

void use_everything() {
  const auto service = std::make_shared<test::SimpleService>();
  const Client client = connect("simple://", {}, service->factory());
  DistributedLock lock = client.make_lock("x");
  Lease lease = lock.acquire();
  check(lease.held(), 1);
  check(lease.name() == "x", 2);
  check(lease.release(), 3);
  check(Lease().name().empty(), 4);
  lock.lock();
  check(lock.lease().held(), 5);
  lock.unlock();
  check(!lock.lease().held(), 6);
  RecursiveLock recursive(client.make_lock("y"));
  check(!recursive.lease().has_value(), 7);
  check(recursive.try_lock_for(std::chrono::seconds(1)), 8);
  recursive.unlock();
  const Failure why = test::thrown_by([] { (void)connect("nonesuch://"); });
  check(why.code == errc::invalid_argument, 9);
  check(why.code.message() == "invalid argument", 10);
}

TEST(StaticDestruction, Client_MayBeMadeAndUsedUntilTheEnd) {
  EXPECT_EXIT(
      {
        alarm(30);  // a hang ends as a signal
        use_everything();
        at_the_end.action = use_everything;
        std::exit(0);  // NOLINT(concurrency-mt-unsafe): what this is about
      },
      testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace dlock

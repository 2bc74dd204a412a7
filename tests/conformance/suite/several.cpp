// Contract 1, 3 and 6 for several locks at once: a MultiLock holds all or none, and knows when one of them is lost.
#include <atomic>
#include <chrono>
#include <memory>
#include <stop_token>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "suite/contract.hpp"

namespace dlock::conformance {

DLOCK_CONFORMANCE_TESTS(several)

TEST_P(Contract, C06_SeveralLocksOfWhichOneIsHeldLeaveNothing) {
  DLOCK_APPLIES_IF(kind().kind == LockKind::lock, "it is said of plain locks");
  const std::vector<std::string> names{name("c"), name("a"), name("b")};
  MultiLock all = client().make_multi_lock(names);
  Lock& others = lock_of(client(), name("c"));
  {
    const Lease last = take(others);
    EXPECT_FALSE(all.try_acquire().has_value());
    std::error_code error;
    EXPECT_FALSE(all.acquire({.wait = std::chrono::milliseconds(1)}, error).has_value());
    EXPECT_EQ(error, errc::timed_out);
    EXPECT_TRUE(last.held());
  }
  for (const std::string& each : names) {
    await_no_residue(each);
    EXPECT_TRUE(is_free(each));
  }
  MultiLease leases = all.acquire({.wait = guard()});
  EXPECT_TRUE(leases.held());
  for (const std::string& each : names) EXPECT_FALSE(is_free(each));
  EXPECT_TRUE(leases.release());
  for (const std::string& each : names) await_no_residue(each);
}

TEST_P(Contract, C01_SeveralLocksInAnyOrderExcludeEachOtherAndEndInNoCircle) {
  DLOCK_APPLIES_IF(kind().kind == LockKind::lock, "it is said of plain locks");
  constexpr std::size_t contenders = 4;
  constexpr int times = 10;
  Client& one = client();
  Client& two = client();
  std::atomic<int> counter{0};  // what the locks protect: its increment is not atomic
  std::atomic<int> failures{0};
  run_threads(contenders, [&](std::size_t i) {
    MultiLock both =
        i % 2 == 0 ? one.make_multi_lock({name("a"), name("b")}) : two.make_multi_lock({name("b"), name("a")});
    for (int round = 0; round < times; ++round) {
      std::error_code error;
      const MultiLease leases = both.acquire({.wait = guard()}, error);
      if (error) return void(failures.fetch_add(1));
      const int value = counter.load(std::memory_order_relaxed);
      std::this_thread::yield();
      counter.store(value + 1, std::memory_order_relaxed);
    }
  });
  EXPECT_EQ(failures.load(), 0);
  EXPECT_EQ(counter.load(), static_cast<int>(contenders) * times);
}

TEST_P(Contract, C03_TheLossOfOneOfSeveralLocksIsSignalledAndTheOthersAreGivenBack) {
  DLOCK_APPLIES_IF(kind().kind == LockKind::lock, "it is said of plain locks");
  DLOCK_NEEDS(kill_hold);
  step_time_if_possible();
  MultiLock both = client().make_multi_lock({name("a"), name("b")});
  struct Ended {
    MultiLease leases;
    Event event;
  };
  const auto ended = std::make_shared<Ended>();
  both.async_acquire(renewed(), [ended](std::error_code error, MultiLease got) {
    EXPECT_FALSE(error);
    ended->leases = std::move(got);
    ended->event.set();
  });
  ended->event.wait("two free locks are not acquired");
  MultiLease leases = std::move(ended->leases);
  ASSERT_TRUE(leases.held());
  const auto lost = std::make_shared<Event>();
  const std::stop_callback on_loss(leases.lost(), [lost] { lost->set(); });
  fixture().kill_hold(LockKind::lock, name("a"));
  pass_until(*lost, "the loss of one of several locks is not signalled");
  EXPECT_FALSE(leases.held());
  EXPECT_FALSE(leases.release());
  await_no_residue(name("b"));
  EXPECT_TRUE(is_free(name("b")));
}

}  // namespace dlock::conformance

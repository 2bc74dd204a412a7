// Contract 13: a release reports whether the lease was still ours; destroying a lease releases it, bounded in time.
#include <chrono>
#include <future>
#include <optional>
#include <utility>

#include "suite/contract.hpp"

namespace dlock::conformance {

DLOCK_CONFORMANCE_TESTS(release)

TEST_P(Contract, C13_AReleaseFreesTheLockAtOnce) {
  step_time_if_possible();
  Lock& lock = lock_of(client());
  Lease lease = take(lock);
  EXPECT_TRUE(lease.release());
  EXPECT_TRUE(is_free(name()));
}

TEST_P(ClientContract, C13_ASecondReleaseSaysNo) {
  Lock& lock = lock_of(client());
  Lease lease = take(lock);
  EXPECT_TRUE(lease.release());
  EXPECT_FALSE(lease.release());
  std::error_code error = make_error_code(errc::protocol);
  EXPECT_FALSE(lease.release(error));
  EXPECT_FALSE(error) << error.message();
  EXPECT_FALSE(Lease().release());
}

TEST_P(Contract, C13_AReleaseOfAKilledHoldSaysNo) {
  DLOCK_NEEDS(kill_hold);
  Lock& lock = lock_of(client());
  Lease lease = take(lock);
  kill_hold(name());
  EXPECT_FALSE(lease.release());
  EXPECT_FALSE(lease.held());
}

TEST_P(Contract, C13_AReleaseOfALeaseThatRanOutSaysNo) {
  step_time_if_possible();
  Lock& lock = lock_of(client());
  Lease lease = take(lock, fixed());
  const LossEvent loss(lease);
  pass_until(loss.event(), "a lease of fixed length does not end");
  EXPECT_FALSE(lease.release());
}

TEST_P(Contract, C13_OnlyOneOfTwoReleasesAtOnceSaysYes) {
  Lock& lock = lock_of(client());
  for (int round = 0; round < 20; ++round) {
    Lease lease = take(lock);
    bool first = false;
    bool second = false;
    {
      const Thread one([&] { first = lease.release(); });
      const Thread two([&] { second = lease.release(); });
    }
    EXPECT_NE(first, second);
    ASSERT_TRUE(is_free(name()));
  }
}

TEST_P(Contract, C13_AnAsynchronousReleaseReports) {
  Lock& lock = lock_of(client());
  Lease lease = take(lock);
  std::promise<std::pair<std::error_code, bool>> answer;
  lease.async_release([&](std::error_code ec, bool was_ours) { answer.set_value({ec, was_ours}); });
  EXPECT_FALSE(lease.held());
  auto future = answer.get_future();
  const auto [error, was_ours] = await(future, "an asynchronous release is not answered");
  EXPECT_FALSE(error) << error.message();
  EXPECT_TRUE(was_ours);
  EXPECT_TRUE(is_free(name()));
}

TEST_P(Contract, C13_DestroyingALeaseReleasesIt) {
  step_time_if_possible();
  Lock& lock = lock_of(client());
  { const Lease lease = take(lock); }
  EXPECT_TRUE(is_free(name()));
}

TEST_P(ClientContract, C13_AssigningToALeaseReleasesWhatItHeld) {
  step_time_if_possible();
  Lock& one = lock_of(client(), name("one"));
  Lock& two = lock_of(client(), name("two"));
  Lease lease = take(one);
  lease = take(two);
  EXPECT_TRUE(is_free(name("one")));
  EXPECT_FALSE(is_free(name("two")));
  EXPECT_TRUE(lease.held());
  lease = Lease();
  EXPECT_TRUE(is_free(name("two")));
}

TEST_P(ClientContract, C13_MovingALeaseKeepsTheLock) {
  Lock& lock = lock_of(client());
  Lease lease = take(lock);
  const FencingToken token = lease.token();
  Lease moved = std::move(lease);
  EXPECT_FALSE(is_free(name()));
  EXPECT_EQ(moved.token(), token);
  EXPECT_TRUE(moved.release());
}

TEST_P(Contract, C13_DestroyingALeaseOfAStalledServiceIsBounded) {
  DLOCK_NEEDS(stall);
  Lock& lock = lock_of(client(impatient(), Link::disturbed));
  std::optional<Lease> lease = take(lock);
  fixture().stall();
  const TimePoint start = now();
  lease.reset();
  expect_within(impatience, start, "the end of a lease of a stalled service");
  fixture().resume();
  Lock& next = lock_of(client());
  EXPECT_TRUE(take(next).held());
}

TEST_P(Contract, C13_UnlockingAStalledServiceIsBounded) {
  DLOCK_APPLIES_IF(kind().kind == LockKind::lock, "plain locks show it");
  DLOCK_NEEDS(stall);
  DistributedLock lock = client(impatient(), Link::disturbed).make_lock(name());
  lock.lock();
  fixture().stall();
  const TimePoint start = now();
  lock.unlock();
  expect_within(impatience, start, "an unlock of a stalled service");
  fixture().resume();
}

TEST_P(Contract, C13_DestroyingAClientOfAStalledServiceIsBounded) {
  DLOCK_NEEDS(stall);
  Client& stalled = client(impatient(), Link::disturbed);
  Lock& lock = lock_of(stalled);
  const Lease lease = take(lock, {.lease = this->lease()});
  fixture().stall();
  const TimePoint start = now();
  close(stalled);
  expect_within(impatience, start, "the end of a client of a stalled service");
  EXPECT_FALSE(lease.held());
  fixture().resume();
  Lock& next = lock_of(client());
  EXPECT_TRUE(take(next).held());
}

TEST_P(ClientContract, C13_AReleaseIsObservedOnce) {
  const auto observer = std::make_shared<RecordingObserver>();
  Lock& lock = lock_of(client({.observer = observer}));
  Lease lease = take(lock);
  EXPECT_TRUE(lease.release());
  EXPECT_FALSE(lease.release());
  observer->releases(name()).wait("a release is not observed");
  settle();
  EXPECT_EQ(observer->releases(name()).count(), 1U);
}

}  // namespace dlock::conformance

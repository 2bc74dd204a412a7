// Contracts 5 and 13: only the owner releases or renews; a release reports whether the lease was still ours; destroying
// a lease releases it, bounded in time.
#include <chrono>
#include <optional>
#include <utility>

#include "suite/contract.hpp"

namespace dlock::conformance {

DLOCK_CONFORMANCE_TESTS(ownership)

// Shows: hole broken-by-hand
TEST_P(Contract, C05_StaleReleaseNeverFreesTheNextHolder) {
  DLOCK_NEEDS(kill_hold);
  auto [stale, next] = after_kill();
  EXPECT_FALSE(stale.release());
  expect_untouched(next);
}

TEST_P(Contract, C05_StaleReleaseAfterTheLeaseRanOutNeverFreesTheNextHolder) {
  auto [stale, next] = after_expiry();
  EXPECT_FALSE(stale.release());
  expect_untouched(next);
}

TEST_P(Contract, C05_DestroyingAStaleLeaseNeverFreesTheNextHolder) {
  DLOCK_NEEDS(kill_hold);
  auto [stale, next] = after_kill();
  { const Lease destroyed = std::move(stale); }
  expect_untouched(next);
}

TEST_P(Contract, C05_StaleRenewalNeverTouchesTheNextHolder) {
  DLOCK_NEEDS(kill_hold);
  step_time_if_possible();
  Lock& stale_lock = lock_of(client());
  Lock& next_lock = lock_of(client());
  const Lease stale = take(stale_lock, renewed());
  const LossEvent loss(stale);
  kill_hold(name());
  Lease next = take(next_lock);
  pass_until(loss.event(), "a renewal after the next holder has entered is not refused");
  EXPECT_FALSE(stale.held());
  expect_untouched(next);
}

TEST_P(Contract, C05_AHolderCutOffNeverTouchesTheNextHolderWhenItIsBack) {
  DLOCK_NEEDS(cut);
  DLOCK_APPLIES_IF(caps().lease_kind != LeaseKind::process, "leases do not run out by time");
  step_time_if_possible();
  Client& disturbed = client({.lease = lease()}, Link::disturbed);
  Lock& stale_lock = lock_of(disturbed);
  Lock& next_lock = lock_of(client());
  Lease stale = take(stale_lock);
  fixture().cut();
  Pending entering(next_lock, {});
  pass_until(entering.event(), "nobody enters after the holder was cut off");
  Lease next = entering.lease();
  fixture().heal();
  // That the client reaches the service again shows that whatever it had to send has arrived.
  Lock& other = lock_of(disturbed, name("other"));
  Pending reconnecting(other, {});
  pass_until(reconnecting.event(), "a client that was cut off does not come back");
  EXPECT_FALSE(reconnecting.get().error);
  EXPECT_FALSE(stale.release());
  expect_untouched(next);
}

TEST_P(Contract, C05_OwnersAreDifferentForEveryAcquire) {
  Lock& lock = lock_of(client());
  const OwnerId first = take(lock).owner();
  const OwnerId second = take(lock).owner();
  EXPECT_NE(first, OwnerId());
  EXPECT_NE(first, second);
}

TEST_P(Contract, C13_AReleaseFreesTheLockAtOnce) {
  step_time_if_possible();
  Lock& lock = lock_of(client());
  Lease lease = take(lock);
  EXPECT_TRUE(lease.release());
  EXPECT_TRUE(is_free(name()));
  await_no_residue(name());
  { const Lease destroyed = take(lock); }
  EXPECT_TRUE(is_free(name()));
}

TEST_P(ClientContract, C13_ASecondReleaseSaysNoAndIsNotObserved) {
  const auto observer = std::make_shared<RecordingObserver>();
  Lock& lock = lock_of(client({.observer = observer}));
  Lease lease = take(lock);
  EXPECT_TRUE(lease.release());
  EXPECT_FALSE(lease.held());
  EXPECT_FALSE(lease.release());
  std::error_code error = make_error_code(errc::protocol);
  EXPECT_FALSE(lease.release(error));
  EXPECT_FALSE(error) << error.message();
  observer->releases(name()).wait("a release is not observed");
  settle();
  EXPECT_EQ(observer->releases(name()).count(), 1U);
}

TEST_P(Contract, C13_AReleaseOfAKilledHoldSaysNo) {
  DLOCK_NEEDS(kill_hold);
  Lease lease = take(lock_of(client()));
  kill_hold(name());
  EXPECT_FALSE(lease.release());
  EXPECT_FALSE(lease.held());
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
  Lease lease = take(lock_of(client()));
  std::error_code error = make_error_code(errc::protocol);
  bool released = false;
  Event answered;
  lease.async_release([&](std::error_code ec, bool was_ours) {
    error = ec;
    released = was_ours;
    answered.set();
  });
  EXPECT_FALSE(lease.held());
  answered.wait("an asynchronous release is not answered");
  EXPECT_FALSE(error) << error.message();
  EXPECT_TRUE(released);
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

TEST_P(Contract, C13_DestroyingALeaseOfAStalledServiceIsBounded) {
  DLOCK_NEEDS(stall);
  std::optional<Lease> lease = take(lock_of(client(impatient(), Link::disturbed)));
  expect_bounded_while_stalled("the end of a lease of a stalled service", [&] { lease.reset(); });
}

// Shows: deadlines
TEST_P(Contract, C13_UnlockingAStalledServiceIsBounded) {
  DLOCK_APPLIES_IF(kind().kind == LockKind::lock, "plain locks show it");
  DLOCK_NEEDS(stall);
  DistributedLock lock = client(impatient(), Link::disturbed).make_lock(name());
  lock.lock();
  expect_bounded_while_stalled("an unlock of a stalled service", [&] { lock.unlock(); });
}

// Shows: deadlines
TEST_P(Contract, C13_DestroyingAClientOfAStalledServiceIsBounded) {
  DLOCK_NEEDS(stall);
  Client& stalled = client(impatient(), Link::disturbed);
  const Lease lease = take(lock_of(stalled), {.lease = this->lease()});
  expect_bounded_while_stalled("the end of a client of a stalled service", [&] { close(stalled); });
  EXPECT_FALSE(lease.held());
}

}  // namespace dlock::conformance

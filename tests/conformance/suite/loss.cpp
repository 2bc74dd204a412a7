// Contract 3: loss is signalled, no later than valid_until().
#include <algorithm>
#include <optional>

#include "suite/contract.hpp"

namespace dlock::conformance {

DLOCK_CONFORMANCE_TESTS(loss)

TEST_P(Contract, C03_AKilledHoldIsSignalled) {
  DLOCK_NEEDS(kill_hold);
  step_time_if_possible();
  Lock& lock = lock_of(client());
  const Lease lease = take(lock, renewed());
  const LossEvent loss(lease);
  kill_hold(name());
  const TimePoint killed = now();
  const TimePoint valid_until = lease.valid_until();  // a slow kill outlasts the first period
  pass_until(loss.event(), "the loss of a killed hold is not signalled");
  EXPECT_FALSE(lease.held());
  // Where leases do not run out, the backend says itself how often it looks.
  if (valid_until != TimePoint::max()) expect_within(valid_until - killed, killed, "the signal of a loss");
}

TEST_P(Contract, C03_AKilledHoldIsSignalledWithinItsLease) {
  DLOCK_NEEDS(kill_hold);
  DLOCK_NEEDS(step_clock);
  DLOCK_APPLIES_IF(caps().lease_kind == LeaseKind::per_lock, "there is no lease of the lock's own");
  step_time_if_possible();
  Lock& lock = lock_of(client());
  const Lease lease = take(lock, renewed());
  const LossEvent loss(lease);
  const TimePoint valid_until = lease.valid_until();
  kill_hold(name());
  step(valid_until - now());
  loss.event().wait("the loss of a killed hold is not signalled by the end of its lease");
}

TEST_P(Contract, C03_TheEndOfALeaseIsSignalledNoLaterThanValidUntil) {
  DLOCK_NEEDS(step_clock);
  step_time_if_possible();
  Lock& lock = lock_of(client());
  const Lease lease = take(lock, fixed());
  const LossEvent loss(lease);
  EXPECT_FALSE(loss.happened());
  step(lease.valid_until() - now());
  loss.event().wait("the end of a lease is not signalled");
}

TEST_P(Contract, C03_TheEndOfALeaseIsSignalledInTimeForTheNextHolder) {
  step_time_if_possible();
  Lock& first_lock = lock_of(client());
  Lock& next_lock = lock_of(client());
  const Lease first = take(first_lock, fixed());
  bool signalled = false;
  // Looking is enough: it need not have been told before.
  Pending next(next_lock, {}, [&](Lease& /*lease*/) { signalled = first.lost().stop_requested(); });
  pass_until(next.event(), "nobody enters after a lease has run out");
  EXPECT_TRUE(next.lease().held());
  EXPECT_TRUE(signalled);
}

TEST_P(Contract, C03_AHolderCutOffIsToldInTimeForTheNextHolder) {
  DLOCK_NEEDS(cut);
  DLOCK_APPLIES_IF(caps().lease_kind != LeaseKind::process, "leases do not run out by time");
  step_time_if_possible();
  Lock& first_lock = lock_of(client({.lease = lease()}, Link::disturbed));
  const Lease first = take(first_lock);
  const LossEvent loss(first);
  fixture().cut();
  const TimePoint cut = now();
  pass_until(loss.event(), "a holder that is cut off is not told of its loss");
  EXPECT_FALSE(first.held());
  expect_within(std::max(first.valid_until() - cut, std::chrono::nanoseconds(0)), cut, "the signal of a loss");
  Lock& next_lock = lock_of(client());
  Pending next(next_lock, {});
  pass_until(next.event(), "nobody enters after the holder was cut off");
  EXPECT_FALSE(first.held());
  EXPECT_TRUE(next.lease().held());
  fixture().heal();
}

TEST_P(Contract, C03_AReleaseIsNoLoss) {
  step_time_if_possible();
  Lock& lock = lock_of(client());
  Lease lease = take(lock, renewed());
  const LossEvent loss(lease);
  EXPECT_TRUE(lease.release());
  EXPECT_FALSE(lease.lost().stop_requested());
  if (stepping()) step(2 * this->lease());
  settle();
  EXPECT_FALSE(loss.happened());
}

TEST_P(Contract, C03_AReleasedLeaseIsNotLostWhenItsClientGoes) {
  Client& gone = client();
  Lock& lock = lock_of(gone);
  Lease lease = take(lock);
  const LossEvent loss(lease);
  EXPECT_TRUE(lease.release());
  close(gone);
  EXPECT_FALSE(loss.happened());
  EXPECT_FALSE(lease.lost().stop_requested());
}

TEST_P(Contract, C03_ALossBeforeTheFirstLookIsSeenAtOnce) {
  DLOCK_NEEDS(kill_hold);
  step_time_if_possible();
  const auto observer = std::make_shared<RecordingObserver>();
  Lock& lock = lock_of(client({.observer = observer}));
  const Lease lease = take(lock, renewed());
  kill_hold(name());
  pass_until(observer->losses(name()), "the observer is not told of a loss");
  EXPECT_FALSE(lease.held());
  EXPECT_TRUE(lease.lost().stop_requested());
  EXPECT_TRUE(LossEvent(lease).happened());
}

TEST_P(Contract, C03_TheEndOfALeaseIsSeenAtOnceByWhoeverLooks) {
  DLOCK_NEEDS(step_clock);
  step_time_if_possible();
  Lock& lock = lock_of(client());
  const Lease lease = take(lock, fixed());
  fixture().clock()->advance(lease.valid_until() - now());
  EXPECT_TRUE(lease.lost().stop_requested());
}

TEST_P(Contract, C03_ALossIsToldOnceWithItsToken) {
  DLOCK_NEEDS(kill_hold);
  step_time_if_possible();
  const auto observer = std::make_shared<RecordingObserver>();
  Lock& lock = lock_of(client({.observer = observer}));
  Lease lease = take(lock, renewed());
  kill_hold(name());
  pass_until(observer->losses(name()), "the observer is not told of a loss");
  if (stepping()) step(2 * this->lease());
  EXPECT_FALSE(lease.release());
  settle();
  EXPECT_EQ(observer->losses(name()).count(), 1U);
  EXPECT_EQ(observer->last_loss().token, lease.token());
  EXPECT_TRUE(observer->last_loss().reason.code);
}

TEST_P(ClientContract, C03_ClosingTheClientIsALossForWhoeverStillHolds) {
  Client& gone = client();
  Lock& lock = lock_of(gone);
  const Lease lease = take(lock);
  const LossEvent loss(lease);
  close(gone);
  EXPECT_TRUE(loss.happened());
  EXPECT_FALSE(lease.held());
}

TEST_P(Contract, C03_TheEndOfASessionIsTheLossOfAllItsLeases) {
  DLOCK_NEEDS(kill_session);
  step_time_if_possible();
  Client& doomed = client({.lease = lease(), .close_timeout = std::chrono::milliseconds(100)});
  Lock& one = lock_of(doomed, name("one"));
  Lock& two = lock_of(doomed, name("two"));
  const Lease first = take(one);
  const Lease second = take(two);
  const LossEvent first_loss(first);
  const LossEvent second_loss(second);
  fixture().kill_session(doomed);
  pass_until(first_loss.event(), "the end of a session is not signalled");
  pass_until(second_loss.event(), "the end of a session is not signalled to all leases");
  EXPECT_FALSE(first.held());
  EXPECT_FALSE(second.held());
  EXPECT_TRUE(is_free(name("one")));
  EXPECT_TRUE(is_free(name("two")));
}

TEST_P(ClientContract, C03_AnEmptyLeaseIsNeverLost) {
  EXPECT_FALSE(Lease().lost().stop_requested());
}

}  // namespace dlock::conformance

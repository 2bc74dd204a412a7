// Contracts 3 and 10: loss is signalled, no later than valid_until(); renewal is automatic, stops at release, and never
// revives a lease.
#include <algorithm>

#include "suite/contract.hpp"

namespace dlock::conformance {

DLOCK_CONFORMANCE_TESTS(loss)

namespace {

// In real time a renewal must have a chance to come in time on a busy machine.
constexpr auto sturdy = std::chrono::milliseconds(900);

}  // namespace

// Shows: hole broken-by-hand
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
  bool signalled = false;
  // Looking is enough: it need not have been told before.
  const auto [stale, next] =
      after_expiry([&](const Lease& first, const Lease& /*second*/) { signalled = first.lost().stop_requested(); });
  EXPECT_TRUE(next.held());
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
  Client& gone = client();
  Lock& lock = lock_of(gone);
  Lease lease = take(lock, renewed());
  const LossEvent loss(lease);
  EXPECT_TRUE(lease.release());
  EXPECT_FALSE(lease.lost().stop_requested());
  if (stepping()) step(2 * this->lease());
  settle();
  EXPECT_FALSE(loss.happened());
  close(gone);
  EXPECT_FALSE(loss.happened());
  EXPECT_FALSE(lease.lost().stop_requested());
}

TEST_P(Contract, C03_TheEndOfALeaseIsSeenAtOnceByWhoeverLooks) {
  DLOCK_NEEDS(step_clock);
  step_time_if_possible();
  Lock& lock = lock_of(client());
  const Lease lease = take(lock, fixed());
  fixture().clock()->advance(lease.valid_until() - now());
  EXPECT_TRUE(lease.lost().stop_requested());
}

TEST_P(Contract, C03_ALossIsToldOnceWithItsTokenAndSeenByALaterLook) {
  DLOCK_NEEDS(kill_hold);
  step_time_if_possible();
  const auto observer = std::make_shared<RecordingObserver>();
  Lock& lock = lock_of(client({.observer = observer}));
  Lease lease = take(lock, renewed());
  kill_hold(name());
  pass_until(observer->losses(name()), "the observer is not told of a loss");
  EXPECT_FALSE(lease.held());
  EXPECT_TRUE(lease.lost().stop_requested());
  EXPECT_TRUE(LossEvent(lease).happened());
  if (stepping()) step(2 * this->lease());
  EXPECT_FALSE(lease.release());
  settle();
  EXPECT_EQ(observer->losses(name()).count(), 1U);
  EXPECT_EQ(observer->last_loss().token, lease.token());
  EXPECT_TRUE(observer->last_loss().reason.code);
}

// Shows: renewal, hole mysql-connection-ends, hole postgresql-break
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

TEST_P(Contract, C10_RenewalKeepsALeaseAliveForSeveralTimesItsLength) {
  DLOCK_APPLIES_IF(caps().lease_kind == LeaseKind::per_lock, "leases are not renewed one by one");
  step_time_if_possible();
  const auto length = std::max<std::chrono::nanoseconds>(lease(), sturdy);
  const auto observer = std::make_shared<RecordingObserver>();
  Lock& lock = lock_of(client({.observer = observer}));
  Lease lease = take(lock, {.lease = length});
  const LossEvent loss(lease);
  const TimePoint first_valid_until = lease.valid_until();
  for (std::size_t renewals = 1; lease.valid_until() < first_valid_until + 3 * length; ++renewals) {
    pass_renewals(*observer, name(), renewals);
    ASSERT_TRUE(lease.held());
    ASSERT_FALSE(is_free(name()));
  }
  EXPECT_FALSE(loss.happened());
  EXPECT_TRUE(lease.release());
}

TEST_P(Contract, C10_ALeaseStaysHeldForAsLongAsTheProcessRuns) {
  DLOCK_NEEDS(step_clock);
  step_time_if_possible();
  Lock& lock = lock_of(client());
  Lease lease = take(lock, renewed());
  const LossEvent loss(lease);
  for (int i = 0; i < 60; ++i) {
    step(this->lease() / 12);
    ASSERT_TRUE(lease.held());
  }
  EXPECT_FALSE(is_free(name()));
  EXPECT_FALSE(loss.happened());
  EXPECT_TRUE(lease.release());
}

TEST_P(Contract, C10_NothingIsRenewedAfterRelease) {
  DLOCK_APPLIES_IF(caps().lease_kind == LeaseKind::per_lock, "leases are not renewed one by one");
  step_time_if_possible();
  const auto observer = std::make_shared<RecordingObserver>();
  Client& renewing = client({.observer = observer});
  Lock& lock = lock_of(renewing);
  Lock& other = lock_of(renewing, name("other"));
  Lease lease = take(lock, renewed());
  pass_renewals(*observer, name());
  EXPECT_TRUE(lease.release());
  settle();
  const auto before = observer->renewals(name()).count();
  const Lease still = take(other, renewed());
  pass_renewals(*observer, name("other"), 3);
  EXPECT_EQ(observer->renewals(name()).count(), before);
  EXPECT_TRUE(is_free(name()));
}

TEST_P(Contract, C10_ALeaseOfFixedLengthIsNotRenewed) {
  step_time_if_possible();
  Lock& lock = lock_of(client());
  Lease lease = take(lock, fixed());
  const LossEvent loss(lease);
  const TimePoint valid_until = lease.valid_until();
  EXPECT_LE(valid_until, now() + this->lease());
  pass_until(loss.event(), "a lease of fixed length does not end");
  EXPECT_EQ(lease.valid_until(), valid_until);
  EXPECT_FALSE(lease.held());
  Lock& others = lock_of(client());
  Pending next(others, {});
  pass_until(next.event(), "a lease of fixed length keeps the lock");
  EXPECT_TRUE(next.lease().held());
  EXPECT_FALSE(lease.release());
}

// Hazard: a renewal revives a lock, or races a release
TEST_P(Contract, C10_RenewalNeverTakesAKilledHoldBack) {
  DLOCK_NEEDS(kill_hold);
  step_time_if_possible();
  Lock& lock = lock_of(client());
  const Lease lease = take(lock, renewed());
  const LossEvent loss(lease);
  kill_hold(name());
  pass_until(loss.event(), "a hold that was killed goes on");
  EXPECT_FALSE(lease.held());
  EXPECT_TRUE(is_free(name()));
}

// Hazard: the session expires under a holder or during a wait: dlock compares with its own clock
TEST_P(Contract, C10_RenewalNeverRevivesALeasePastItsDeadline) {
  DLOCK_NEEDS(stall);
  DLOCK_APPLIES_IF(caps().lease_kind == LeaseKind::per_lock, "leases are not renewed one by one");
  step_time_if_possible();
  Client& stalled = client({}, Link::disturbed);
  Lock& lock = lock_of(stalled);
  Lease lease = take(lock, renewed());
  const LossEvent loss(lease);
  fixture().stall();
  pass_until(loss.event(), "a lease whose renewal is not answered does not end");
  if (stepping()) step(this->lease() / 10);  // past the margin, so that it is over in the service, too
  fixture().resume();
  // The stalled requests have arrived when a later request is answered.
  Lock& other = lock_of(stalled, name("other"));
  Pending later(other, {});
  pass_until(later.event(), "a client that was stalled does not come back");
  settle();
  EXPECT_FALSE(lease.held());
  EXPECT_TRUE(lease.lost().stop_requested());
  Lock& others = lock_of(client());
  Pending next(others, {});
  if (stepping()) settle();
  pass_until(next.event(), "a late renewal has revived a lease");
  EXPECT_TRUE(next.lease().held());
  EXPECT_FALSE(lease.release());
}

TEST_P(Contract, C10_ALeaseSurvivesAShortDisturbance) {
  DLOCK_NEEDS(cut);
  DLOCK_NEEDS(step_clock);
  step_time_if_possible();
  Lock& lock = lock_of(client({.lease = lease()}, Link::disturbed));
  Lease lease = take(lock, renewed());
  const LossEvent loss(lease);
  fixture().cut();
  for (int i = 0; i < 6; ++i) step(this->lease() / 12);  // the first renewal fails
  fixture().heal();
  for (int i = 0; i < 24; ++i) step(this->lease() / 12);
  EXPECT_FALSE(loss.happened());
  EXPECT_TRUE(lease.held());
  EXPECT_TRUE(lease.release());
}

TEST_P(Contract, C10_AClockThatJumpsPastTheLeaseEndsIt) {
  DLOCK_NEEDS(step_clock);
  DLOCK_APPLIES_IF(caps().lease_kind != LeaseKind::process, "leases do not run out by time");
  step_time_if_possible();
  Lock& lock = lock_of(client({.lease = lease()}));
  Lease lease = take(lock, renewed());
  const LossEvent loss(lease);
  fixture().clock()->advance(2 * this->lease());  // as after suspend: no renewal could be sent meanwhile
  EXPECT_FALSE(lease.held());
  loss.event().wait("a lease that was slept through is not lost");
  EXPECT_FALSE(lease.release());
}

}  // namespace dlock::conformance

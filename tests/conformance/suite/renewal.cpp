// Contract 10: renewal is automatic, stops at release, and never revives a lease.
#include <algorithm>

#include "suite/contract.hpp"

namespace dlock::conformance {

DLOCK_CONFORMANCE_TESTS(renewal)

namespace {

// In real time a renewal must have a chance to come in time on a busy machine.
constexpr auto sturdy = std::chrono::milliseconds(900);

}  // namespace

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
    pass_until(observer->renewals(name()), "a lease is not renewed", renewals);
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
  pass_until(observer->renewals(name()), "a lease is not renewed");
  EXPECT_TRUE(lease.release());
  settle();
  const auto before = observer->renewals(name()).count();
  const Lease still = take(other, renewed());
  pass_until(observer->renewals(name("other")), "a lease is not renewed", 3);
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

TEST_P(Contract, C10_ALeaseOfFixedLengthCanBeReleasedEarlier) {
  Lock& lock = lock_of(client());
  Lease lease =
      take(lock,
           {.lease = std::clamp<std::chrono::nanoseconds>(std::chrono::seconds(30), caps().min_lease, caps().max_lease),
            .renew = false});
  EXPECT_TRUE(lease.held());
  EXPECT_TRUE(lease.release());
  EXPECT_TRUE(is_free(name()));
}

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
  // What was stalled has arrived when a later request is answered.
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

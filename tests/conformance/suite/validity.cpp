// Contract 2: a lease says until when it is safe.
#include "suite/contract.hpp"

namespace dlock::conformance {

DLOCK_CONFORMANCE_TESTS(validity)

TEST_P(Contract, C02_ValidityIsCountedFromBeforeTheAnswer) {
  DLOCK_APPLIES_IF(caps().lease_kind != LeaseKind::process, "leases do not run out by time");
  step_time_if_possible();
  Lock& lock = lock_of(client());
  const TimePoint before = now();
  const Lease lease = take(lock, fixed());
  EXPECT_GT(lease.valid_until(), before);
  // Strictly less: there is a margin for clocks that run at different rates.
  EXPECT_LT(lease.valid_until(), now() + this->lease());
}

TEST_P(Contract, C02_ValidityIsCountedFromBeforeTheRequestEvenIfTheAnswerIsLate) {
  DLOCK_NEEDS(stall);
  DLOCK_NEEDS(step_clock);
  DLOCK_APPLIES_IF(caps().lease_kind != LeaseKind::process, "leases do not run out by time");
  step_time_if_possible();
  Lock& lock = lock_of(client({}, Link::disturbed));
  fixture().stall();
  const TimePoint sent = now();
  Pending pending(lock, fixed());
  step(std::chrono::milliseconds(500));
  fixture().resume();
  const Lease lease = pending.lease();
  EXPECT_LT(lease.valid_until(), sent + this->lease());
}

TEST_P(Contract, C02_HeldEndsAtValidUntilWithoutBeingTold) {
  DLOCK_NEEDS(step_clock);
  step_time_if_possible();
  Lock& lock = lock_of(client());
  const Lease lease = take(lock, fixed());
  ASSERT_NE(lease.valid_until(), TimePoint::max());
  EXPECT_TRUE(lease.held());
  fixture().clock()->advance(lease.valid_until() - now());
  EXPECT_FALSE(lease.held());
}

TEST_P(Contract, C02_AHolderThatWasStoppedPastItsLeaseSeesThatFirst) {
  DLOCK_NEEDS(processes);
  DLOCK_APPLIES_IF(caps().lease_kind != LeaseKind::process, "a stopped holder keeps the lock");
  Worker holder = worker();
  (void)holder.acquire(name(), lease());
  holder.stop();
  Lock& lock = lock_of(client());
  const Lease lease = take(lock);
  holder.send("held");
  holder.resume();
  EXPECT_EQ(holder.receive(), "held 0");
  EXPECT_TRUE(lease.held());
}

TEST_P(Contract, C02_AStoppedHolderKeepsALeaseThatDoesNotRunOut) {
  DLOCK_NEEDS(processes);
  DLOCK_APPLIES_IF(caps().lease_kind == LeaseKind::process, "leases run out by time");
  Worker holder = worker();
  (void)holder.acquire(name(), lease());
  holder.stop();
  EXPECT_FALSE(is_free(name()));
  holder.send("held");
  holder.resume();
  EXPECT_EQ(holder.receive(), "held 1");
  EXPECT_EQ(holder.ask("release", "released "), "1");
  EXPECT_TRUE(is_free(name()));
}

TEST_P(ClientContract, C02_AReleasedLeaseIsNotHeld) {
  Lock& lock = lock_of(client());
  Lease lease = take(lock);
  EXPECT_TRUE(lease.release());
  EXPECT_FALSE(lease.held());
}

TEST_P(ClientContract, C02_AnEmptyLeaseIsNotHeld) {
  Lock& lock = lock_of(client());
  Lease lease = take(lock);
  const Lease moved = std::move(lease);
  EXPECT_TRUE(moved.held());
  EXPECT_FALSE(lease.held());  // NOLINT(bugprone-use-after-move): documented as empty
  EXPECT_FALSE(Lease().held());
}

TEST_P(ClientContract, C02_ALeaseKnowsItsName) {
  Lock& lock = lock_of(client());
  const Lease lease = take(lock);
  EXPECT_EQ(lease.name(), name());
  EXPECT_EQ(lock.name(), name());
}

}  // namespace dlock::conformance

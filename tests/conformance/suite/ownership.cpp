// Contract 5: only the owner releases or renews.
#include <optional>

#include "suite/contract.hpp"

namespace dlock::conformance {

DLOCK_CONFORMANCE_TESTS(ownership)

TEST_P(Contract, C05_StaleReleaseNeverFreesTheNextHolder) {
  DLOCK_NEEDS(kill_hold);
  Lock& stale_lock = lock_of(client());
  Lock& next_lock = lock_of(client());
  Lease stale = take(stale_lock);
  kill_hold(name());
  Lease next = take(next_lock);
  EXPECT_FALSE(stale.release());
  EXPECT_TRUE(next.held());
  EXPECT_FALSE(is_free(name()));
  EXPECT_TRUE(next.release());
}

TEST_P(Contract, C05_StaleReleaseAfterTheLeaseRanOutNeverFreesTheNextHolder) {
  step_time_if_possible();
  Lock& stale_lock = lock_of(client());
  Lock& next_lock = lock_of(client());
  Lease stale = take(stale_lock, fixed());
  Pending entering(next_lock, {});
  pass_until(entering.event(), "nobody enters after a lease has run out");
  Lease next = entering.lease();
  EXPECT_FALSE(stale.release());
  EXPECT_TRUE(next.held());
  EXPECT_FALSE(is_free(name()));
  EXPECT_TRUE(next.release());
}

TEST_P(Contract, C05_DestroyingAStaleLeaseNeverFreesTheNextHolder) {
  DLOCK_NEEDS(kill_hold);
  Lock& stale_lock = lock_of(client());
  Lock& next_lock = lock_of(client());
  std::optional<Lease> stale = take(stale_lock);
  kill_hold(name());
  Lease next = take(next_lock);
  stale.reset();
  EXPECT_FALSE(is_free(name()));
  EXPECT_TRUE(next.release());
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
  EXPECT_TRUE(next.held());
  EXPECT_FALSE(is_free(name()));
  EXPECT_TRUE(next.release());
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
  EXPECT_TRUE(next.held());
  EXPECT_FALSE(is_free(name()));
  EXPECT_TRUE(next.release());
}

TEST_P(Contract, C05_AWaiterThatGivesUpNeverTouchesTheHolder) {
  auto [lock, others] = two_locks();
  Lease lease = take(lock);
  Pending waiting(others, {});
  waiting.cancel();
  EXPECT_EQ(waiting.get().error, errc::cancelled);
  EXPECT_FALSE(is_free(name()));
  EXPECT_TRUE(lease.held());
  EXPECT_TRUE(lease.release());
}

TEST_P(Contract, C05_ClosingAClientNeverTouchesTheLeasesOfOthers) {
  Lock& lock = lock_of(client());
  Lease lease = take(lock);
  Client& gone = client();
  Lock& same = lock_of(gone);
  Pending waiting(same, {});
  close(gone);
  EXPECT_EQ(waiting.get().error, errc::closed);
  EXPECT_FALSE(is_free(name()));
  EXPECT_TRUE(lease.release());
}

TEST_P(Contract, C05_OwnersAreDifferentForEveryAcquire) {
  Lock& lock = lock_of(client());
  const OwnerId first = take(lock).owner();
  const OwnerId second = take(lock).owner();
  EXPECT_NE(first, OwnerId());
  EXPECT_NE(first, second);
}

}  // namespace dlock::conformance

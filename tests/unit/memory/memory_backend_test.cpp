#include "backends/memory/memory_backend.hpp"

#include <gtest/gtest.h>

#include "tests/unit/memory/backend_fixture.hpp"

namespace dlock::memory {
namespace {

class MemoryBackendTest : public BackendTest {
 protected:
  std::unique_ptr<MemoryBackend> a = make();
  std::unique_ptr<MemoryBackend> b = make();
};

TEST_F(MemoryBackendTest, GrantsAFreeLockInsideTheCall) {
  Attempt attempt;
  const LockRequest request{.name = "lock", .owner = OwnerId(1, 1), .holder = "h", .lease = 30s, .wait = true};
  attempt.contention = a->contend(request, attempt);
  ASSERT_TRUE(attempt.grant);
  EXPECT_EQ(attempt.grant->valid_until, lease_valid_until(engine.now(), 30s));
  EXPECT_EQ(engine.pending_timers(), 0U);
}

TEST_F(MemoryBackendTest, ATryIsToldThatTheLockIsBusyAndLeavesNothing) {
  const auto holder = contend(*a);
  const auto attempt = contend(*b, false);
  EXPECT_EQ(attempt->busy_reports, 1);
  EXPECT_FALSE(attempt->grant);
  EXPECT_EQ(residue(), 1U);
}

TEST_F(MemoryBackendTest, AReleaseHandsOverToAnotherClientAtOnce) {
  const auto holder = contend(*a);
  const auto waiter = contend(*b);
  EXPECT_FALSE(waiter->grant);
  engine.advance(10s);
  EXPECT_EQ(release(*a, *holder->grant), ReleaseOutcome::Status::released);
  ASSERT_TRUE(waiter->grant);
  EXPECT_GT(waiter->grant->token, holder->grant->token);
  EXPECT_EQ(waiter->grant->valid_until, lease_valid_until(engine.now(), 30s));
}

TEST_F(MemoryBackendTest, TheFirstInLineNoticesTheEndOfALease) {
  const auto holder = contend(*a, true, 30s);
  const auto waiter = contend(*b);
  engine.advance(30s - 1ns);
  EXPECT_FALSE(waiter->grant);
  engine.advance(1ns);
  EXPECT_TRUE(waiter->grant);
  EXPECT_EQ(renew(*a, *holder->grant).status, RenewOutcome::Status::lost);
  EXPECT_EQ(release(*a, *holder->grant), ReleaseOutcome::Status::not_owner);
}

TEST_F(MemoryBackendTest, TheNextInLineNoticesTheEndOfAShorterLease) {
  const auto holder = contend(*a, true, 1h);
  const auto second = contend(*a, true, 1s);
  const auto third = contend(*b);
  EXPECT_EQ(release(*a, *holder->grant), ReleaseOutcome::Status::released);
  ASSERT_TRUE(second->grant);
  engine.advance(1s);
  EXPECT_TRUE(third->grant);
}

TEST_F(MemoryBackendTest, ARenewalMovesTheEndOfTheLease) {
  const auto holder = contend(*a, true, 30s);
  const auto waiter = contend(*b);
  engine.advance(20s);
  const auto outcome = renew(*a, *holder->grant);
  EXPECT_EQ(outcome.status, RenewOutcome::Status::renewed);
  EXPECT_EQ(outcome.valid_until, lease_valid_until(engine.now(), 30s));
  engine.advance(29s);
  EXPECT_FALSE(waiter->grant);
  engine.advance(1s);
  EXPECT_TRUE(waiter->grant);
}

TEST_F(MemoryBackendTest, AWaiterThatGivesUpLeavesTheQueue) {
  const auto holder = contend(*a);
  const auto quitter = contend(*b);
  const auto waiter = contend(*b);
  EXPECT_EQ(residue(), 3U);
  quitter->contention.reset();
  EXPECT_EQ(residue(), 2U);
  EXPECT_EQ(release(*a, *holder->grant), ReleaseOutcome::Status::released);
  EXPECT_TRUE(waiter->grant);
}

TEST_F(MemoryBackendTest, AWaiterThatGivesUpJustAfterTheHandOverPassesTheLockOn) {
  const auto holder = contend(*a);
  const auto quitter = contend(*b);
  const auto waiter = contend(*b);
  a->release(*holder->grant, [](const ReleaseOutcome&) {});
  quitter->contention.reset();  // before it could be told
  engine.run();
  EXPECT_TRUE(waiter->grant);
  EXPECT_EQ(residue(), 1U);
}

TEST_F(MemoryBackendTest, AClientThatGoesLeavesNoWaiter) {
  const auto holder = contend(*a);
  auto waiter = contend(*b);
  waiter->contention.reset();
  b.reset();
  EXPECT_EQ(release(*a, *holder->grant), ReleaseOutcome::Status::released);
  engine.run();
  EXPECT_EQ(residue(), 0U);
}

// --- Killed from outside ---------------------------------------------------------------------------------------------

TEST_F(MemoryBackendTest, ABrokenLockIsFoundLostByTheRenewal) {
  const auto holder = contend(*a);
  EXPECT_TRUE(store->break_lock(LockKind::lock, "lock", engine.clock()));
  EXPECT_EQ(renew(*a, *holder->grant).status, RenewOutcome::Status::lost);
  EXPECT_EQ(release(*a, *holder->grant), ReleaseOutcome::Status::not_owner);
}

// --- Close -----------------------------------------------------------------------------------------------------------

TEST_F(MemoryBackendTest, CloseIsDoneAtOnceWhenNothingIsLeft) {
  bool closed = false;
  a->close([&] { closed = true; });
  EXPECT_TRUE(closed);
}

TEST_F(MemoryBackendTest, ADestroyedBackendIgnoresNewsThatAreUnderWay) {
  const auto holder = contend(*a);
  const auto waiter = contend(*b);
  a->release(*holder->grant, [](const ReleaseOutcome&) {});
  waiter->contention.reset();
  b.reset();
  engine.run();
  EXPECT_FALSE(waiter->grant);
  EXPECT_EQ(residue(), 0U);
}

// --- The other strategies --------------------------------------------------------------------------------------------

TEST_F(MemoryBackendTest, AWatchingWaiterIsWokenByTheRelease) {
  const auto watcher = make(Strategy::watch);
  const auto holder = contend(*a);
  const auto waiter = contend(*watcher);
  EXPECT_FALSE(waiter->grant);
  EXPECT_EQ(release(*a, *holder->grant), ReleaseOutcome::Status::released);
  EXPECT_TRUE(waiter->grant) << "no time has passed: only a wake-up can have told";
}

TEST_F(MemoryBackendTest, APollingWaiterComesBackByItself) {
  const auto poller = make(Strategy::poll);
  const auto holder = contend(*a);
  const auto waiter = contend(*poller);
  EXPECT_EQ(release(*a, *holder->grant), ReleaseOutcome::Status::released);
  EXPECT_FALSE(waiter->grant);
  engine.advance(40ms);
  EXPECT_TRUE(waiter->grant);
}

TEST_F(MemoryBackendTest, CapabilitiesFollowTheStrategy) {
  EXPECT_TRUE(a->capabilities().fair);
  EXPECT_EQ(a->capabilities().strategy, "queue");
  const auto watcher = make(Strategy::watch);
  EXPECT_FALSE(watcher->capabilities().fair);
  EXPECT_FALSE(watcher->capabilities().counts_waiters);
  EXPECT_EQ(watcher->capabilities().strategy, "watch");
}

}  // namespace
}  // namespace dlock::memory

#include "backends/memory/memory_store.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tests/unit/memory/store_fixture.hpp"

namespace dlock::memory {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

// --- Owners ----------------------------------------------------------------------------------------------------------

TEST_F(MemoryStoreTest, GrantsAFreeLockAndTellsOthersWhenTheLeaseEnds) {
  EXPECT_TRUE(try_acquire(1).granted);
  clock.advance(10s);
  const auto busy = try_acquire(2);
  EXPECT_FALSE(busy.granted);
  EXPECT_EQ(busy.lease_ends, clock.now() + 20s);
}

TEST_F(MemoryStoreTest, GrantsTheOwnerAgainWithTheSameTokenAndANewLease) {
  const auto first = try_acquire(1);
  clock.advance(10s);
  const auto second = try_acquire(1);
  EXPECT_TRUE(second.granted);
  EXPECT_EQ(second.token, first.token);
  EXPECT_EQ(second.lease_ends, clock.now() + 30s);
}

TEST_F(MemoryStoreTest, OnlyTheOwnerReleases) {
  (void)try_acquire(1);
  EXPECT_FALSE(release(2));
  EXPECT_FALSE(try_acquire(2).granted);
  EXPECT_TRUE(release(1));
  EXPECT_FALSE(release(1));
  EXPECT_TRUE(try_acquire(2).granted);
}

TEST_F(MemoryStoreTest, OnlyTheOwnerRenews) {
  (void)try_acquire(1);
  clock.advance(20s);
  EXPECT_FALSE(renew(2));
  EXPECT_EQ(store.inspect(LockKind::lock, "lock", clock).remaining, 10s);
  EXPECT_TRUE(renew(1));
  EXPECT_EQ(store.inspect(LockKind::lock, "lock", clock).remaining, 30s);
}

TEST_F(MemoryStoreTest, NeitherRenewsNorReleasesANameThatNobodyUsed) {
  EXPECT_FALSE(renew(1));
  EXPECT_FALSE(release(1));
  EXPECT_FALSE(store.break_lock(LockKind::lock, "lock", clock));
  EXPECT_EQ(store.size(), 0U);
}

// --- Leases ----------------------------------------------------------------------------------------------------------

TEST_F(MemoryStoreTest, ALeaseEndsExactlyOnTime) {
  (void)try_acquire(1, 30s);
  clock.advance(30s - 1ns);
  EXPECT_FALSE(try_acquire(2).granted);
  clock.advance(1ns);
  EXPECT_TRUE(try_acquire(2).granted);
}

TEST_F(MemoryStoreTest, ARenewalNeverRevivesALease) {
  (void)try_acquire(1, 30s);
  clock.advance(30s);
  EXPECT_FALSE(renew(1));
  EXPECT_FALSE(store.inspect(LockKind::lock, "lock", clock).held);
  EXPECT_FALSE(release(1));
}

TEST_F(MemoryStoreTest, AStaleReleaseDoesNotTouchTheNextHolder) {
  (void)try_acquire(1, 30s);
  clock.advance(30s);
  (void)try_acquire(2, 30s);
  EXPECT_FALSE(release(1));
  EXPECT_FALSE(renew(1));
  EXPECT_TRUE(renew(2));
}

TEST_F(MemoryStoreTest, ALeaseOfAnyLengthDoesNotOverflow) {
  EXPECT_EQ(try_acquire(1, std::chrono::nanoseconds::max()).lease_ends, TimePoint::max());
  EXPECT_FALSE(try_acquire(2).granted);
}

// --- Tokens ----------------------------------------------------------------------------------------------------------

TEST_F(MemoryStoreTest, TokensGrowWithEveryLease) {
  FencingToken last;
  for (std::uint64_t owner = 1; owner <= 1000; ++owner) {
    const auto answer = try_acquire(owner);
    ASSERT_TRUE(answer.granted);
    ASSERT_GT(answer.token, last);
    last = answer.token;
    ASSERT_TRUE(release(owner));
  }
}

TEST_F(MemoryStoreTest, TokensGrowWhenTheWallClockIsSteppedBack) {
  const auto before = try_acquire(1).token;
  (void)release(1);
  clock.step_wall(-24h);
  EXPECT_GT(try_acquire(2).token, before);
}

TEST_F(MemoryStoreTest, TokensGrowAcrossStores) {
  const auto before = try_acquire(1).token;
  clock.advance(1us);
  MemoryStore another;
  EXPECT_GT(another.try_acquire(request(2), 0s, clock).token, before);
}

TEST_F(MemoryStoreTest, TokensFitASignedInteger) {
  clock.step_wall(24h * 365 * 230);  // close to the end of system_clock
  EXPECT_LT(try_acquire(1).token.value(), std::uint64_t{1} << 63U);
}

TEST_F(MemoryStoreTest, TokensGrowThoughTheNameWasForgotten) {
  const auto before = try_acquire(1).token;
  (void)release(1);
  clock.step_wall(-24h);
  for (std::uint64_t i = 0; i < 5000; ++i) {
    const auto name = "other " + std::to_string(i);
    (void)store.try_acquire(request(i, 30s, name), 0s, clock);
    (void)store.release(LockKind::lock, name, OwnerId(0, i), clock);
  }
  ASSERT_LT(store.size(), 2000U) << "names pile up";
  EXPECT_GT(try_acquire(2).token, before);
}

TEST_F(MemoryStoreTest, NamesWhoseLeasesRanOutUnnoticedAreForgotten) {
  for (std::uint64_t i = 0; i < 5000; ++i) {
    (void)store.try_acquire(request(i, 1s, "other " + std::to_string(i)), 0s, clock);
    clock.advance(1s);
  }
  EXPECT_LT(store.size(), 2000U) << "names pile up";
}

TEST_F(MemoryStoreTest, NamesInUseAreNotForgotten) {
  for (std::uint64_t i = 0; i < 5000; ++i) {
    (void)store.try_acquire(request(i, 30s, "held " + std::to_string(i)), 0s, clock);
  }
  for (std::uint64_t i = 0; i < 5000; ++i) {
    ASSERT_TRUE(store.release(LockKind::lock, "held " + std::to_string(i), OwnerId(0, i), clock)) << i;
  }
}

// --- Administration --------------------------------------------------------------------------------------------------

TEST_F(MemoryStoreTest, InspectDescribesTheHolder) {
  const auto token = try_acquire(1, 30s).token;
  (void)enqueue(2);
  clock.advance(10s);
  const auto info = store.inspect(LockKind::lock, "lock", clock);
  EXPECT_EQ(info.name, "lock");
  EXPECT_TRUE(info.held);
  EXPECT_EQ(info.holder, "host:1:a");
  EXPECT_EQ(info.token, token);
  EXPECT_EQ(info.remaining, 20s);
  EXPECT_EQ(info.waiters, 1U);
}

TEST_F(MemoryStoreTest, InspectRemembersTheLastTokenOfAFreeLock) {
  const auto token = try_acquire(1).token;
  (void)release(1);
  const auto info = store.inspect(LockKind::lock, "lock", clock);
  EXPECT_FALSE(info.held);
  EXPECT_EQ(info.holder, "");
  EXPECT_EQ(info.token, token);
  EXPECT_EQ(info.remaining, std::nullopt);
  EXPECT_EQ(info.waiters, 0U);
}

TEST_F(MemoryStoreTest, InspectOfAnUnknownNameDoesNotCreateIt) {
  const auto info = store.inspect(LockKind::lock, "unknown", clock);
  EXPECT_EQ(info.name, "unknown");
  EXPECT_FALSE(info.held);
  EXPECT_EQ(info.waiters, 0U);
  EXPECT_THAT(store.list(LockKind::lock, clock), IsEmpty());
}

TEST_F(MemoryStoreTest, ListIsSortedAndCountsAnEndedLeaseAsFree) {
  for (const char* name : {"b", "a", "c"}) (void)store.try_acquire(request(1, 30s, name), 0s, clock);
  (void)store.release(LockKind::lock, "c", OwnerId(0, 1), clock);
  clock.advance(20s);
  (void)store.renew({.name = "a", .owner = OwnerId(0, 1), .token = {}, .valid_until = {}, .lease = 30s}, clock);
  clock.advance(20s);
  std::vector<std::string> names;
  for (const auto& info : store.list(LockKind::lock, clock))
    names.push_back(info.name + (info.held ? " held" : " free"));
  EXPECT_THAT(names, ElementsAre("a held", "b free", "c free"));
}

TEST_F(MemoryStoreTest, BreakTakesTheLockFromItsHolder) {
  (void)try_acquire(1);
  EXPECT_TRUE(store.break_lock(LockKind::lock, "lock", clock));
  EXPECT_FALSE(renew(1));
  EXPECT_FALSE(store.break_lock(LockKind::lock, "lock", clock));
}

// --- Killed clients --------------------------------------------------------------------------------------------------

TEST_F(MemoryStoreTest, AKilledClientLeavesNothing) {
  (void)store.try_acquire(request(1, 30s, "lock", "host:1:b"), 0s, clock);
  (void)enqueue(request(2, 30s, "lock", "host:1:b"), b);
  (void)enqueue(3);
  LockRequest leader = request(4, 30s, "election", "host:1:b");
  leader.kind = LockKind::election;
  leader.value = "address";
  (void)store.try_acquire(leader, 0s, clock);
  store.kill("host:1:b", clock);
  EXPECT_THAT(a.news, ElementsAre("granted 3"));
  EXPECT_THAT(b.news, IsEmpty());
  EXPECT_EQ(store.residue("lock", clock), 1U);
  EXPECT_EQ(store.residue("election", clock, LockKind::election), 0U);
}

TEST_F(MemoryStoreTest, AKilledFirstInLinePassesTheTurnOn) {
  (void)try_acquire(1);
  (void)enqueue(request(2, 30s, "lock", "host:1:b"), b);
  (void)enqueue(3);
  store.kill("host:1:b", clock);
  EXPECT_THAT(a.news, ElementsAre("first 3"));
}

TEST_F(MemoryStoreTest, ResidueCountsHolderAndWaiters) {
  EXPECT_EQ(store.residue("lock", clock), 0U);
  (void)try_acquire(1, 30s);
  (void)enqueue(2, 30s);
  EXPECT_EQ(store.residue("lock", clock), 2U);
  (void)release(2);
  clock.advance(30s);
  EXPECT_EQ(store.residue("lock", clock), 0U);
}

// --- Registry --------------------------------------------------------------------------------------------------------

TEST(MemoryStoreRegistry, TheSameNameIsTheSameStore) {
  const auto store = MemoryStore::named("registry test");
  EXPECT_EQ(MemoryStore::named("registry test"), store);
  EXPECT_NE(MemoryStore::named("registry test 2"), store);
  EXPECT_NE(MemoryStore::named(""), store);
}

TEST(MemoryStoreRegistry, AStoreLivesAsLongAsSomebodyHoldsOnToIt) {
  std::weak_ptr<MemoryStore> weak = MemoryStore::named("registry test");
  EXPECT_TRUE(weak.expired());
}

// --- Forgetting ------------------------------------------------------------------------------------------------------

TEST_F(MemoryStoreTest, ForgetsANameAndItsTokensStillGrow) {
  const auto before = try_acquire(1);
  EXPECT_TRUE(release(1));
  clock.advance(1min);
  EXPECT_THAT(store.forget({.name = "other", .idle = 1min}, clock), IsEmpty());
  EXPECT_THAT(store.forget({.name = "lock", .idle = 1min}, clock), ElementsAre("lock"));
  EXPECT_EQ(store.size(), 0U);
  EXPECT_THAT(store.forget({.name = "lock", .idle = 1min}, clock), IsEmpty());
  clock.step_wall(-1h);
  EXPECT_GT(try_acquire(2).token, before.token);
}

TEST_F(MemoryStoreTest, ForgetsANameWhoseLeaseRanOutUnnoticed) {
  (void)try_acquire(1, 30s);
  clock.advance(1h);
  EXPECT_THAT(store.forget({.name = "lock", .idle = 1min}, clock), ElementsAre("lock"));
}

TEST_F(MemoryStoreTest, ForgetsNoNameThatIsInUse) {
  (void)try_acquire(1, 1h);
  (void)enqueue(2);
  clock.advance(30min);
  EXPECT_THAT(store.forget({.name = "lock", .idle = 1min}, clock), IsEmpty()) << "held";
  EXPECT_TRUE(release(1));
  EXPECT_TRUE(release(2));
  EXPECT_THAT(store.forget({.name = {}, .idle = 1min}, clock), IsEmpty()) << "just taken";
  const auto watch = store.watch(LockKind::lock, "lock", a.on_change());
  clock.advance(1h);
  EXPECT_THAT(store.forget({.name = {}, .idle = 1min}, clock), IsEmpty()) << "waited for";
  store.unwatch(LockKind::lock, "lock", watch);
  EXPECT_THAT(store.forget({.name = {}, .idle = 2h}, clock), IsEmpty()) << "not as old";
  EXPECT_THAT(store.forget({.name = {}, .idle = 1h}, clock), ElementsAre("lock"));
}

TEST_F(MemoryStoreTest, Names_ThatWereOnlyWatched_AreForgottenWithTheirLastWatch) {
  const auto first = store.watch(LockKind::election, "seen", a.on_change());
  const auto second = store.watch(LockKind::election, "seen", b.on_change());
  store.unwatch(LockKind::election, "seen", first);
  EXPECT_EQ(store.size(), 1U);
  store.unwatch(LockKind::election, "seen", second);
  EXPECT_EQ(store.size(), 0U);
}

}  // namespace
}  // namespace dlock::memory

// Waiting at the store: the queue and the watches.
#include "backends/memory/memory_store.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/unit/memory/store_fixture.hpp"

namespace dlock::memory {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class MemoryStoreQueueTest : public MemoryStoreTest {};

// --- The queue -------------------------------------------------------------------------------------------------------

TEST_F(MemoryStoreQueueTest, AReleaseHandsTheLockToTheFirstInLine) {
  (void)try_acquire(1);
  EXPECT_TRUE(enqueue(2).first_in_line);
  EXPECT_FALSE(enqueue(request(3), b).first_in_line);
  clock.advance(10s);
  EXPECT_TRUE(release(1));

  EXPECT_THAT(a.news, ElementsAre("granted 2"));
  EXPECT_EQ(a.last.lease_ends, clock.now() + 30s);
  EXPECT_THAT(b.news, ElementsAre("first 3"));
  EXPECT_EQ(b.last.lease_ends, clock.now() + 30s);
  EXPECT_TRUE(renew(2));
}

TEST_F(MemoryStoreQueueTest, AReleaseTellsOneWaiterOnly) {
  (void)try_acquire(1);
  for (std::uint64_t owner = 2; owner <= 100; ++owner) (void)enqueue(owner);
  (void)release(1);
  EXPECT_THAT(a.news, ElementsAre("granted 2", "first 3"));
}

TEST_F(MemoryStoreQueueTest, WaitersAreServedInTheOrderTheyCame) {
  (void)try_acquire(1);
  for (std::uint64_t owner = 2; owner <= 50; ++owner) (void)enqueue(owner);
  FencingToken last;
  for (std::uint64_t owner = 1; owner < 50; ++owner) {
    ASSERT_TRUE(release(owner)) << owner;
    ASSERT_GT(a.last_token, last);
    last = a.last_token;
  }
  EXPECT_TRUE(release(50));
}

TEST_F(MemoryStoreQueueTest, AskingAgainKeepsThePlaceInTheQueue) {
  (void)try_acquire(1);
  (void)enqueue(2);
  (void)enqueue(3);
  EXPECT_TRUE(enqueue(2).first_in_line);
  EXPECT_EQ(store.inspect(LockKind::lock, "lock", clock).waiters, 2U);
}

TEST_F(MemoryStoreQueueTest, AWaiterWhoGotTheLockIsGrantedWhenItAsksAgain) {
  (void)try_acquire(1);
  (void)enqueue(2);
  (void)release(1);
  const auto answer = enqueue(2);
  EXPECT_TRUE(answer.granted);
  EXPECT_EQ(answer.token, a.last_token);
}

TEST_F(MemoryStoreQueueTest, NobodyOvertakesTheQueue) {
  (void)try_acquire(1, 30s);
  (void)enqueue(2);
  clock.advance(30s);
  EXPECT_FALSE(try_acquire(3).granted);
  EXPECT_THAT(a.news, ElementsAre("granted 2"));
}

TEST_F(MemoryStoreQueueTest, AWaiterThatLeavesIsSkipped) {
  (void)try_acquire(1);
  (void)enqueue(2);
  (void)enqueue(3);
  EXPECT_FALSE(release(2));
  EXPECT_THAT(a.news, ElementsAre("first 3"));
  (void)release(1);
  EXPECT_THAT(a.news, ElementsAre("first 3", "granted 3"));
}

TEST_F(MemoryStoreQueueTest, AWaiterThatLeavesTheMiddleOfTheQueueIsNoNews) {
  (void)try_acquire(1);
  (void)enqueue(2);
  (void)enqueue(3);
  EXPECT_FALSE(release(3));
  EXPECT_THAT(a.news, IsEmpty());
}

TEST_F(MemoryStoreQueueTest, AWaiterWhoseLeaseRanOutUnnoticedGivesWayToTheNext) {
  (void)try_acquire(1, 30s);
  (void)enqueue(2, 10s);
  (void)enqueue(3);
  (void)release(1);
  clock.advance(10s);
  EXPECT_FALSE(renew(2, 10s));
  EXPECT_THAT(a.news, ElementsAre("granted 2", "first 3", "granted 3"));
}

// --- Watching --------------------------------------------------------------------------------------------------------

TEST_F(MemoryStoreQueueTest, WatchesAreToldWhenTheLockBecomesFree) {
  (void)try_acquire(1);
  (void)store.watch(LockKind::lock, "lock", b.on_change());
  EXPECT_THAT(b.news, IsEmpty());
  (void)release(1);
  EXPECT_THAT(b.news, ElementsAre("freed"));
}

TEST_F(MemoryStoreQueueTest, WatchesAreNotToldWhileTheLockGoesFromHandToHand) {
  (void)try_acquire(1);
  (void)store.watch(LockKind::lock, "lock", b.on_change());
  (void)enqueue(2);
  (void)release(1);
  EXPECT_THAT(b.news, IsEmpty());
  (void)store.break_lock(LockKind::lock, "lock", clock);
  EXPECT_EQ(b.news.size(), 1U);
}

TEST_F(MemoryStoreQueueTest, AnEndedWatchIsToldNothing) {
  (void)try_acquire(1);
  store.unwatch(LockKind::lock, "lock", store.watch(LockKind::lock, "lock", b.on_change()));
  (void)release(1);
  EXPECT_THAT(b.news, IsEmpty());
}

}  // namespace
}  // namespace dlock::memory

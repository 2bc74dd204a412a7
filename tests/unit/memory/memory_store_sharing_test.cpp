// Locks that several hold at once: who enters beside whom, and in which order.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "backends/memory/memory_store.hpp"

#include "tests/unit/memory/store_fixture.hpp"

namespace dlock::memory {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

class SharingTest : public MemoryStoreTest {
 protected:
  explicit SharingTest(LockKind kind) : space_(kind) {}

  [[nodiscard]] LockRequest asked(std::uint64_t owner, Mode mode, std::chrono::nanoseconds lease = 30s) const {
    LockRequest made = request(owner, lease);
    made.kind = space_;
    made.mode = mode;
    made.permits = permits;
    return made;
  }
  bool leave(std::uint64_t owner) { return store.release(space_, "lock", OwnerId(0, owner), clock); }
  bool extend(std::uint64_t owner, std::chrono::nanoseconds lease = 30s) {
    return store.renew(
        {.name = "lock", .owner = OwnerId(0, owner), .token = {}, .valid_until = {}, .lease = lease, .kind = space_},
        clock);
  }
  [[nodiscard]] LockInfo info() { return store.inspect(space_, "lock", clock); }

  std::uint32_t permits = 1;

 private:
  const LockKind space_;
};

// --- Read-write locks ------------------------------------------------------------------------------------------------

class ReadWriteTest : public SharingTest {
 protected:
  ReadWriteTest() : SharingTest(LockKind::read_write) {}

  MemoryStore::Answer read(std::uint64_t owner, std::chrono::nanoseconds lease = 30s) {
    return enqueue(asked(owner, Mode::shared, lease), a);
  }
  MemoryStore::Answer write(std::uint64_t owner, std::chrono::nanoseconds lease = 30s) {
    return enqueue(asked(owner, Mode::exclusive, lease), a);
  }
  bool try_read(std::uint64_t owner) { return store.try_acquire(asked(owner, Mode::shared), 0s, clock).granted; }
};

TEST_F(ReadWriteTest, ReadersEnterTogetherAndAWriterAlone) {
  EXPECT_TRUE(read(1).granted);
  EXPECT_TRUE(read(2).granted);
  EXPECT_FALSE(write(3).granted);
  (void)leave(1);
  EXPECT_THAT(a.news, IsEmpty());
  (void)leave(2);
  EXPECT_THAT(a.news, ElementsAre("granted 3"));
  EXPECT_FALSE(write(4).granted);
  EXPECT_FALSE(read(5).granted);
}

TEST_F(ReadWriteTest, ReadersWhoWaitNextToEachOtherEnterInOneWave) {
  (void)write(1);
  for (std::uint64_t owner : {2U, 3U, 4U}) (void)read(owner);
  (void)write(5);
  (void)read(6);
  (void)leave(1);
  EXPECT_THAT(a.news, ElementsAre("granted 2", "granted 3", "granted 4", "first 5"));
  for (std::uint64_t owner : {2U, 3U, 4U}) (void)leave(owner);
  a.news.clear();
  (void)leave(5);
  EXPECT_THAT(a.news, ElementsAre("granted 6"));
}

TEST_F(ReadWriteTest, NobodyReadsPastAWriterWhoWaits) {
  (void)read(1);
  (void)write(2);
  EXPECT_FALSE(try_read(3));
  EXPECT_FALSE(read(4).granted);
  (void)leave(1);
  EXPECT_THAT(a.news, ElementsAre("granted 2", "first 4"));
}

TEST_F(ReadWriteTest, AWriterWhoLeavesTheLineLetsThoseBehindItIn) {
  (void)read(1);
  (void)write(2);
  (void)read(3);
  (void)read(4);
  EXPECT_FALSE(leave(2));
  EXPECT_THAT(a.news, ElementsAre("granted 3", "granted 4"));
}

TEST_F(ReadWriteTest, AWriterWhoseClientIsKilledLetsThoseBehindItIn) {
  (void)read(1);
  LockRequest writer = asked(2, Mode::exclusive);
  writer.holder = "host:1:b";
  (void)enqueue(writer, b);
  (void)read(3);
  store.kill("host:1:b", clock);
  EXPECT_THAT(a.news, ElementsAre("granted 3"));
}

TEST_F(ReadWriteTest, OneReadersLeaseRunsOutAlone) {
  (void)read(1, 30s);
  (void)read(2, 30s);
  const auto writer = write(3);
  EXPECT_EQ(writer.lease_ends, clock.now() + 30s);
  clock.advance(20s);
  EXPECT_TRUE(extend(1));
  clock.advance(10s);
  EXPECT_FALSE(extend(2)) << "what others renew keeps no dead reader alive";
  EXPECT_THAT(info().holders, SizeIs(1));
  EXPECT_THAT(a.news, IsEmpty());
  (void)leave(1);
  EXPECT_THAT(a.news, ElementsAre("granted 3"));
}

TEST_F(ReadWriteTest, TheFirstInLineIsToAskWhenTheFirstLeaseEnds) {
  (void)read(1, 30s);
  (void)read(2, 10s);
  EXPECT_EQ(write(3).lease_ends, clock.now() + 10s);
}

TEST_F(ReadWriteTest, AWritersTokenIsGreaterThanAllAndAReadersThanThatOfEveryEarlierWriter) {
  const auto first = read(1).token;
  const auto second = read(2).token;
  EXPECT_NE(first, second);
  (void)leave(1);
  (void)leave(2);
  const auto writer = write(3).token;
  EXPECT_GT(writer, first);
  EXPECT_GT(writer, second);
  (void)leave(3);
  EXPECT_GT(read(4).token, writer);
}

TEST_F(ReadWriteTest, AReaderWhoAsksAgainKeepsItsToken) {
  const auto token = read(1).token;
  (void)read(2);
  (void)write(3);
  const auto again = read(1);
  EXPECT_TRUE(again.granted);
  EXPECT_EQ(again.token, token);
}

TEST_F(ReadWriteTest, BreakingTakesTheLockFromAllWhoHoldIt) {
  (void)read(1);
  (void)read(2);
  (void)write(3);
  EXPECT_TRUE(store.break_lock(LockKind::read_write, "lock", clock));
  EXPECT_FALSE(extend(1));
  EXPECT_FALSE(extend(2));
  EXPECT_THAT(a.news, ElementsAre("granted 3"));
}

TEST_F(ReadWriteTest, AllHoldersAreShown) {
  (void)read(1, 30s);
  (void)enqueue(asked(2, Mode::shared, 50s), b);
  (void)write(3);
  const LockInfo seen = info();
  EXPECT_EQ(seen.kind, LockKind::read_write);
  EXPECT_TRUE(seen.held);
  EXPECT_EQ(seen.remaining, 50s);
  EXPECT_EQ(seen.waiters, 1U);
  ASSERT_THAT(seen.holders, SizeIs(2));
  EXPECT_EQ(seen.holders[0].mode, Mode::shared);
  EXPECT_EQ(seen.holders[0].remaining, 30s);
  EXPECT_EQ(seen.holders[1].remaining, 50s);
  EXPECT_LT(seen.holders[0].token, seen.holders[1].token);
  EXPECT_EQ(seen.token, seen.holders[1].token);
}

TEST_F(ReadWriteTest, KindsDoNotTouchEachOther) {
  ASSERT_TRUE(write(1).granted);
  EXPECT_TRUE(try_acquire(2).granted);
  EXPECT_FALSE(release(1));
  EXPECT_THAT(store.list(LockKind::read_write, clock), SizeIs(1));
  EXPECT_THAT(store.list(LockKind::semaphore, clock), IsEmpty());
  EXPECT_EQ(store.residue("lock", clock), 1U);
  EXPECT_EQ(store.residue("lock", clock, LockKind::read_write), 1U);
}

// --- Without a line --------------------------------------------------------------------------------------------------

class MarkTest : public ReadWriteTest {
 protected:
  MemoryStore::Answer try_for(std::uint64_t owner, Mode mode, bool wait) {
    LockRequest made = asked(owner, mode);
    made.wait = wait;
    return store.try_acquire(made, 4s, clock);
  }
};

TEST_F(MarkTest, AWriterWhoWaitsKeepsNewReadersOut) {
  (void)try_for(1, Mode::shared, false);
  EXPECT_FALSE(try_for(2, Mode::exclusive, true).granted);
  const auto reader = try_for(3, Mode::shared, true);
  EXPECT_FALSE(reader.granted);
  EXPECT_EQ(reader.lease_ends, clock.now() + 4s);
  (void)leave(1);
  EXPECT_FALSE(try_for(3, Mode::shared, true).granted) << "it is the writer's turn";
  EXPECT_TRUE(try_for(2, Mode::exclusive, true).granted);
  (void)leave(2);
  EXPECT_TRUE(try_for(3, Mode::shared, true).granted);
}

TEST_F(MarkTest, AWriterWhoOnlyTriesLeavesNoMark) {
  (void)try_for(1, Mode::shared, false);
  EXPECT_FALSE(try_for(2, Mode::exclusive, false).granted);
  EXPECT_TRUE(try_for(3, Mode::shared, false).granted);
}

TEST_F(MarkTest, AMarkThatIsNotRenewedEnds) {
  (void)try_for(1, Mode::shared, false);
  (void)try_for(2, Mode::exclusive, true);
  clock.advance(3s);
  (void)try_for(2, Mode::exclusive, true);
  clock.advance(4s - 1ns);
  EXPECT_FALSE(try_for(3, Mode::shared, false).granted);
  clock.advance(1ns);
  EXPECT_TRUE(try_for(3, Mode::shared, false).granted);
}

TEST_F(MarkTest, AWriterWhoGivesUpTakesItsMarkAway) {
  (void)try_for(1, Mode::shared, false);
  (void)try_for(2, Mode::exclusive, true);
  (void)store.watch(LockKind::read_write, "lock", b.on_change());
  (void)leave(2);
  EXPECT_THAT(b.news, SizeIs(1));
  EXPECT_TRUE(try_for(3, Mode::shared, false).granted);
}

TEST_F(MarkTest, TheMarkOfOneWriterIsNotAnothers) {
  (void)try_for(1, Mode::shared, false);
  (void)try_for(2, Mode::exclusive, true);
  (void)try_for(3, Mode::exclusive, true);
  (void)leave(3);
  EXPECT_FALSE(try_for(4, Mode::shared, false).granted);
}

TEST_F(MarkTest, WatchesAreToldWhileOthersMayEnter) {
  (void)try_for(1, Mode::shared, false);
  (void)try_for(2, Mode::shared, false);
  (void)store.watch(LockKind::read_write, "lock", b.on_change());
  (void)leave(1);
  EXPECT_THAT(b.news, SizeIs(1)) << "a reader could enter";
  (void)leave(2);
  EXPECT_THAT(b.news, SizeIs(2));
}

// --- Semaphores ------------------------------------------------------------------------------------------------------

class PermitTest : public SharingTest {
 protected:
  PermitTest() : SharingTest(LockKind::semaphore) { permits = 2; }

  MemoryStore::Answer take(std::uint64_t owner, std::chrono::nanoseconds lease = 30s) {
    return enqueue(asked(owner, Mode::exclusive, lease), a);
  }
};

TEST_F(PermitTest, AsManyEnterAsThereArePermitsAndTheOthersInTheirOrder) {
  EXPECT_TRUE(take(1).granted);
  EXPECT_TRUE(take(2).granted);
  for (std::uint64_t owner : {3U, 4U, 5U}) EXPECT_FALSE(take(owner).granted);
  (void)leave(2);
  (void)leave(1);
  EXPECT_THAT(a.news, ElementsAre("granted 3", "first 4", "granted 4", "first 5"));
  EXPECT_EQ(info().permits, 2U);
  EXPECT_THAT(info().holders, SizeIs(2));
}

TEST_F(PermitTest, NobodyTakesAPermitPastThoseWhoWait) {
  (void)take(1);
  (void)take(2);
  (void)take(3);
  EXPECT_FALSE(store.try_acquire(asked(4, Mode::exclusive), 0s, clock).granted);
}

TEST_F(PermitTest, ThePermitOfADeadHolderComesBack) {
  (void)take(1, 10s);
  (void)take(2, 30s);
  (void)take(3);
  clock.advance(10s);
  EXPECT_FALSE(extend(1, 10s));
  EXPECT_THAT(a.news, ElementsAre("granted 3"));
  EXPECT_FALSE(leave(1)) << "a permit that is lost frees nothing";
  EXPECT_THAT(info().holders, SizeIs(2));
}

TEST_F(PermitTest, AnotherNumberOfPermitsIsRefusedWhileTheSemaphoreIsUsed) {
  (void)take(1);
  permits = 3;
  const auto refused = take(2);
  EXPECT_FALSE(refused.granted);
  EXPECT_EQ(refused.other_permits, 2U);
  EXPECT_EQ(info().waiters, 0U);
  EXPECT_TRUE(enqueue(asked(1, Mode::exclusive), a).granted) << "its owner's, as before";
  (void)leave(1);
  EXPECT_TRUE(take(2).granted);
  EXPECT_EQ(info().permits, 3U);
}

TEST_F(PermitTest, AThousandPermits) {
  permits = 1000;
  for (std::uint64_t owner = 1; owner <= 1000; ++owner) ASSERT_TRUE(take(owner).granted) << owner;
  EXPECT_FALSE(take(1001).granted);
  (void)leave(500);
  EXPECT_THAT(a.news, ElementsAre("granted 1001"));
}

TEST_F(PermitTest, OnePermitIsALock) {
  permits = 1;
  const auto first = take(1).token;
  EXPECT_FALSE(take(2).granted);
  (void)leave(1);
  EXPECT_GT(a.last_token, first);
  EXPECT_THAT(a.news, ElementsAre("granted 2"));
}

}  // namespace
}  // namespace dlock::memory

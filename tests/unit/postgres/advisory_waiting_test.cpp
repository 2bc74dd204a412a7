// Waits in the server, over connections of a pool, and the locks that live there afterwards.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "advisory_fixture.hpp"
#include "tests/unit/support/reports.hpp"

namespace dlock::postgres {

namespace {

using Released = ReleaseOutcome::Status;

class PostgresAdvisoryWaiting : public PostgresAdvisory {
 protected:
  // The slice that a connection waits in is over.
  void end_slices(const std::string& sqlstate = "55P03", bool granted_all_the_same = false) {
    table.instead = [this, sqlstate, granted_all_the_same](const FakeQuery& query) -> std::optional<FakeReply> {
      if (!query.uses(sql().lock_slice)) return std::nullopt;
      if (granted_all_the_same) table.take(query.param(0), query.connection);
      return FakeReply::refused(sqlstate);
    };
    server.release();
    table.instead = nullptr;
  }
};

TEST_F(PostgresAdvisoryWaiting, TriesFirstAndThenWaitsOnAnotherConnection) {
  table.seize(key("a"));
  const auto& a = wait_for("a");
  EXPECT_LE(count(sql().try_lock), 2U);
  ASSERT_EQ(count(sql().lock_slice), 1U);
  const FakeQuery& slice = last(sql().lock_slice);
  EXPECT_EQ(slice.purpose.word, "waiting");
  EXPECT_EQ(slice.purpose.session_lease, options.lease);
  EXPECT_NE(slice.connection, server.queries[0].connection);
  EXPECT_GE(std::stoi(slice.param(3)), 30000);
  EXPECT_LE(std::stoi(slice.param(3)), 60000);
  table.give_back(key("a"));
  engine.run();
  ASSERT_TRUE(a.grant);
  EXPECT_EQ(a.grant->valid_until, lease_valid_until(engine.now(), options.lease));
  EXPECT_EQ(table.holder(key("a")), slice.connection);
}

TEST_F(PostgresAdvisoryWaiting, WhatIsFreeNeedsNoOtherConnection) {
  EXPECT_TRUE(wait_for("a").grant);
  EXPECT_EQ(server.dialled, 1);
}

TEST_F(PostgresAdvisoryWaiting, WaitsForALockOfTheSameClientWithoutTrying) {
  const auto& a = try_now("a");
  const auto& b = wait_for("a");
  EXPECT_EQ(count(sql().try_lock), 1U);
  EXPECT_FALSE(b.grant);
  EXPECT_EQ(release(a), Released::released);
  ASSERT_TRUE(b.grant);
  EXPECT_GT(b.grant->token, a.grant->token);
  EXPECT_FALSE(table.entered_twice);
}

TEST_F(PostgresAdvisoryWaiting, ALockLivesWhereItWasGrantedAndIsReleasedThere) {
  const auto& a = get_after_waiting("a");
  const int member = last(sql().lock_slice).connection;
  engine.advance(1min);
  EXPECT_TRUE(host.losses.empty());
  ASSERT_FALSE(host.extensions.empty());
  EXPECT_EQ(host.extensions.back().first, a.request.owner);
  EXPECT_EQ(release(a), Released::released);
  EXPECT_EQ(last(sql().unlock).connection, member);
  EXPECT_FALSE(table.held(key("a")));
  EXPECT_EQ(release(a), Released::not_owner);
}

TEST_F(PostgresAdvisoryWaiting, AnUnlockOfWhatWasNotHeldIsNotOwner) {
  const auto& a = get_after_waiting("a");
  table.forget(table.holder(key("a")));
  EXPECT_EQ(release(a), Released::not_owner);
  EXPECT_TRUE(host.losses.empty());
}

TEST_F(PostgresAdvisoryWaiting, AConnectionIsUsedAgain) {
  for (int i = 0; i < 3; ++i) {
    const auto& a = get_after_waiting("a");
    ASSERT_TRUE(a.grant);
    EXPECT_EQ(release(a), Released::released);
  }
  EXPECT_EQ(server.dialled, 2);
}

TEST_F(PostgresAdvisoryWaiting, ATryIsBusyWhileTheLockIsOnAnotherConnectionOfOurs) {
  const auto& a = get_after_waiting("a");
  ASSERT_TRUE(a.grant);
  EXPECT_EQ(try_now("a").busy_reports, 1);
}

// --- Slices ----------------------------------------------------------------------------------------------------------

TEST_F(PostgresAdvisoryWaiting, AGrantInTheMomentInWhichTheSliceEndsIsNotHeldTwice) {
  table.seize(key("a"));
  const auto& a = wait_for("a");
  table.forget(0);  // free, and nobody has looked yet
  end_slices("55P03", true);
  engine.advance(50ms);
  ASSERT_TRUE(a.grant);
  EXPECT_FALSE(table.entered_twice);
  EXPECT_EQ(release(a), Released::released);
  EXPECT_EQ(table.size(), 0U);
}

// --- Trouble ---------------------------------------------------------------------------------------------------------

TEST_F(PostgresAdvisoryWaiting, WhatGoesWrongAfterABusyAnswerBeginsWithAShortPause) {
  table.seize(key("a"));
  answer(sql().try_lock, FakeReply::refused("53200"));
  const auto& a = wait_for("a");
  engine.advance(5s);  // of longer and longer pauses
  table.instead = nullptr;
  engine.advance(2s);
  ASSERT_GE(a.busy_reports, 1);
  const auto asked = [this] { return count(sql().try_lock) + count(sql().lock_slice); };
  const std::size_t before = asked();
  end_slices("53200");
  engine.advance(50ms);
  EXPECT_GT(asked(), before);
}

TEST_F(PostgresAdvisoryWaiting, WithItsConnectionALockIsLostAndNoOther) {
  const auto& other = try_now("other");
  const auto& a = get_after_waiting("a");
  break_connection(table.holder(key("a")));
  ASSERT_TRUE(lost(host, a.request.owner));
  EXPECT_EQ(release(a), Released::not_owner);
  EXPECT_EQ(release(other), Released::released);
}

TEST_F(PostgresAdvisoryWaiting, AReleaseThatIsNotAnsweredGivesTheConnectionUp) {
  const auto& a = get_after_waiting("a");
  table.holds_unlocks = true;
  release_soon(a);
  engine.advance(4s);
  ASSERT_EQ(released.size(), 1U);
  EXPECT_EQ(released[0].status, Released::failed);
  EXPECT_EQ(server.open(), 1U);
}

TEST_F(PostgresAdvisoryWaiting, AReleaseWhoseAnswerIsLostIsFailed) {
  const auto& a = get_after_waiting("a");
  table.holds_unlocks = true;
  release_soon(a);
  break_connection(table.holder(key("a")));
  ASSERT_EQ(released.size(), 1U);
  EXPECT_EQ(released[0].status, Released::failed);
  EXPECT_TRUE(host.losses.empty());
}

TEST_F(PostgresAdvisoryWaiting, AnAnswerOfAnotherSessionIsNoGrant) {
  table.seize(key("a"));
  const auto& a = wait_for("a");
  answer(sql().lock_slice, FakeReply::of({{"5", "4711"}}));
  server.release();
  engine.run();
  ASSERT_TRUE(failed(a, errc::unsupported));
  EXPECT_EQ(count(sql().unlock), 1U);
  EXPECT_EQ(server.open(), 1U);
}

// --- More who wait than connections ----------------------------------------------------------------------------------

TEST_F(PostgresAdvisoryWaiting, BeyondTheLimitOneWaitsForAConnection) {
  for (const char* name : {"a", "b", "c"}) table.seize(key(name));
  const auto& a = wait_for("a");
  (void)wait_for("b");
  const auto& c = wait_for("c");
  EXPECT_EQ(count(sql().lock_slice), 2U);
  table.give_back(key("a"));
  engine.run();
  ASSERT_TRUE(a.grant);
  EXPECT_EQ(release(a), Released::released);  // and its connection is free
  EXPECT_EQ(count(sql().lock_slice), 3U);
  EXPECT_EQ(last(sql().lock_slice).param(1), "c");
  table.give_back(key("c"));
  engine.run();
  EXPECT_TRUE(c.grant);
  EXPECT_EQ(server.dialled, 3);
}

TEST_F(PostgresAdvisoryWaiting, ATryThatIsUnderWayWhenAConnectionIsFreeIsGivenBack) {
  for (const char* name : {"a", "b", "c"}) table.seize(key(name));
  auto& a = wait_for("a");
  (void)wait_for("b");
  const auto& c = wait_for("c");
  table.holds_tries = true;
  engine.advance(1s);  // its try is under way
  a.contention.reset();
  engine.run();
  EXPECT_EQ(last(sql().lock_slice).param(1), "c");
  table.forget(0);
  table.holds_tries = false;
  server.release();
  engine.run();
  ASSERT_TRUE(c.grant);
  EXPECT_EQ(release(c), Released::released);
  EXPECT_EQ(release(c), Released::not_owner);
  EXPECT_FALSE(table.held(key("c")));
}

}  // namespace

}  // namespace dlock::postgres

// What goes wrong on the session where locks are tried for and held.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "advisory_fixture.hpp"
#include "tests/simulation/postgres/array_elements.hpp"
#include "tests/unit/support/reports.hpp"

namespace dlock::postgres {

namespace {

using Released = ReleaseOutcome::Status;

class PostgresAdvisoryTrouble : public PostgresAdvisory {
 protected:
  // The next queries of that statement are refused, so many of them; the lock is taken all the same.
  void refuse(const Statement& statement, const std::string& sqlstate, int times = 1) {
    table.instead = [this, &statement, sqlstate, times](const FakeQuery& query) mutable -> std::optional<FakeReply> {
      if (!query.uses(statement) || times == 0) return std::nullopt;
      --times;
      if (query.uses(sql().try_lock) || query.uses(sql().lock_slice)) table.take(query.param(0), query.connection);
      if (query.uses(sql().try_lock)) table.take(elements_of(query.param(0)).front(), query.connection);
      return FakeReply::refused(sqlstate);
    };
  }
};

// --- Tables that somebody else has locked ----------------------------------------------------------------------------

// Were all of them sent at once, what is heard of the session would be as old as the first of them.
TEST_F(PostgresAdvisoryTrouble, ManyTriesThatAreKeptWaitingOneByOneDoNotCostTheSession) {
  const auto& held = try_now("held");
  int answers = 0;
  table.instead = [&](const FakeQuery& query) -> std::optional<FakeReply> {
    if (!query.uses(sql().try_lock) && !query.uses(sql().try_lock)) return std::nullopt;
    if (answers == 0) return FakeReply::held();
    --answers;
    return FakeReply::refused("55P03");
  };
  for (int i = 0; i < 70; ++i) (void)contend("kept/" + std::to_string(i), true);
  const TimePoint start = engine.now();
  while (engine.now() < start + 2 * options.lease) {
    engine.advance(250ms);
    ++answers;
    server.release();
    engine.run();
    ASSERT_TRUE(host.losses.empty()) << "after " << (engine.now() - start) / 1s << " s";
  }
  table.instead = nullptr;
  server.release();
  engine.run();
  EXPECT_EQ(release(held), Released::released);
}

// --- Sessions that are not ours --------------------------------------------------------------------------------------

TEST_F(PostgresAdvisoryTrouble, AnAnswerOfAnotherSessionIsNoGrant) {
  const auto& held = try_now("held");
  answer(sql().try_lock, FakeReply::of({{"5", "4711"}}));
  const auto& a = try_now("a");
  EXPECT_FALSE(a.grant);
  ASSERT_TRUE(failed(a, errc::unsupported));
  EXPECT_EQ(elements_of(last(sql().unlock).param(0)), std::vector{key("a")});
  ASSERT_TRUE(lost(host, held.request.owner));  // the session is given up
}

// --- Sessions that are lost ------------------------------------------------------------------------------------------

TEST_F(PostgresAdvisoryTrouble, ASessionThatIsLostBeforeItsGrantIsReportedTakesItAlong) {
  for (int events = 0; events < 6; ++events) {
    ASSERT_EQ(release(try_now("warm up")), Released::released);
    auto& a = try_soon("a");
    std::size_t losses = 0;
    a.when_granted = [&] { losses = host.losses.size(); };
    for (int i = 0; i < events; ++i) (void)engine.run_one();
    for (int connection = 1; connection <= server.dialled; ++connection) table.forget(connection);
    server.break_connections();
    engine.advance(1s);
    if (a.grant && !table.held(key("a"))) {
      EXPECT_GT(host.losses.size(), losses) << "after " << events;
    }
    if (a.grant && table.held(key("a"))) (void)release(a);
  }
}

// --- A server that does not answer -----------------------------------------------------------------------------------

TEST_F(PostgresAdvisoryTrouble, AReleaseThatIsNotAnsweredFailsInTimeAndGoesOn) {
  const auto& a = try_now("a");
  const auto& other = try_now("other");
  table.holds_unlocks = true;
  release_soon(a);
  engine.advance(4s);
  ASSERT_EQ(released.size(), 1U);
  EXPECT_EQ(released[0].status, Released::failed);
  table.holds_unlocks = false;
  server.release();
  engine.run();
  EXPECT_FALSE(table.held(key("a")));
  EXPECT_TRUE(table.held(key("other")));  // which is none of its business
  EXPECT_TRUE(host.losses.empty());
  EXPECT_EQ(release(other), Released::released);
  EXPECT_EQ(released.size(), 2U);
}

TEST_F(PostgresAdvisoryTrouble, AnUnlockWithoutAnAnswerGivesASessionUpThatHoldsNothing) {
  const auto& a = try_now("a");
  table.holds_unlocks = true;
  release_soon(a);
  engine.advance(4s);
  EXPECT_EQ(released.at(0).status, Released::failed);
  engine.advance(1s);
  EXPECT_EQ(server.dialled, 2);
}

TEST_F(PostgresAdvisoryTrouble, ASilentSessionIsKeptAsLongAsItsLocksAreSafe) {
  const auto& a = try_now("a");
  table.holds_tries = true;
  auto& b = contend("b", true);
  engine.advance(5s);
  EXPECT_EQ(server.dialled, 1);
  EXPECT_TRUE(host.losses.empty());
  EXPECT_FALSE(b.unreachable_reports.empty());
  engine.advance(7s);
  ASSERT_TRUE(lost(host, a.request.owner));
  table.forget(1);
  table.holds_tries = false;
  server.release();
  engine.run();
  EXPECT_TRUE(b.grant);
}

TEST_F(PostgresAdvisoryTrouble, WhoeverWaitsForASilentSessionIsToldMoreThanOnce) {
  ASSERT_TRUE(try_now("a").grant);
  table.holds_tries = true;
  const auto& b = contend("b", true);
  engine.advance(9s);
  EXPECT_EQ(b.unreachable_reports.size(), 2U);
  EXPECT_TRUE(host.losses.empty());
}

TEST_F(PostgresAdvisoryTrouble, ASilentSessionWithoutLocksIsGivenUpInTime) {
  (void)release(try_now("warm up"));
  table.holds_tries = true;
  auto& b = contend("b", true);
  engine.advance(4s);
  table.holds_tries = false;
  engine.advance(5s);
  EXPECT_GE(server.dialled, 2);
  EXPECT_TRUE(b.grant);
}

}  // namespace

}  // namespace dlock::postgres

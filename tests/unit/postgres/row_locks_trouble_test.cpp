// The row strategies where answers are lost, acquires are given up and clients go.
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "rows_fixture.hpp"
#include "tests/unit/support/reports.hpp"

namespace dlock::postgres {

namespace {

using Words = std::vector<std::string>;

class PostgresRowLocksTrouble : public RowsTest, public testing::WithParamInterface<Strategy> {
 protected:
  PostgresRowLocksTrouble() : RowsTest(GetParam()) {}
};
INSTANTIATE_TEST_SUITE_P(Strategies, PostgresRowLocksTrouble, testing::Values(Strategy::table, Strategy::optimistic),
                         [](const auto& strategy) { return std::string(to_string(strategy.param)); });

// --- Answers that are lost -------------------------------------------------------------------------------------------

TEST_P(PostgresRowLocksTrouble, WhoAsksAgainIsNotTakenForOneOfTheOthers) {
  lose_answers_to("acquire");
  const auto attempt = client->contend("x");
  engine.run();
  ASSERT_EQ(attempt->unreachable_reports.size(), 1U);
  // Others of the same client ask all the time, so that it is never the first of a query.
  std::vector<std::unique_ptr<Attempt>> others;
  for (int i = 0; i < 100 && !attempt->grant; ++i) {
    others.push_back(client->contend("x", false));
    engine.advance(1ms);
  }
  EXPECT_TRUE(attempt->grant);
  for (const auto& other : others) EXPECT_FALSE(other->grant);
}

// Its own transaction may be the one that is changing the row: not finished yet, or looked at by somebody.
TEST_P(PostgresRowLocksTrouble, WhoIsInDoubtStaysSoWhileTheRowIsBeingChanged) {
  lose_answers_to("acquire");
  auto attempt = client->contend("x");
  engine.run();
  rows.rows["x"].locked = true;
  heal();
  engine.advance(2s);
  EXPECT_FALSE(attempt->grant);
  EXPECT_EQ(attempt->busy_reports, 0) << "it may be his own";
  attempt.reset();
  engine.advance(100ms);
  EXPECT_TRUE(rows.held("x"));
  rows.rows["x"].locked = false;
  engine.advance(3s);
  EXPECT_FALSE(rows.held("x"));
}

TEST_P(PostgresRowLocksTrouble, WhoWasInDoubtAndFindsSomebodyElseIsStillInDoubt) {
  reply_to("acquire", FakeReply::lost(), 1);
  auto attempt = client->contend("x");
  engine.run();
  rows.give_to("x", "somebody", 24h);
  engine.advance(1s);
  EXPECT_GE(attempt->busy_reports, 1);
  rows.rows["x"].locked = true;
  rows.free("x");
  engine.advance(3s);
  EXPECT_GT(attempt->unreachable_reports.size(), 1U) << "its first try may be what is changing the row now";
  rows.rows["x"].locked = false;
  rows.give_to("x", "somebody", 24h);
  attempt.reset();
  engine.run();
  EXPECT_EQ(count("release"), 1U);
  engine.advance(5s);
  EXPECT_EQ(count("release"), 2U) << "and once more, for what comes late";
}

TEST_P(PostgresRowLocksTrouble, WhoWasInDoubtAndIsGrantedTheLockCleansUpAfterItsRelease) {
  reply_to("acquire", FakeReply::lost(), 1);
  const auto attempt = client->contend("x");
  engine.advance(1s);
  ASSERT_TRUE(attempt->grant);
  client->release(*attempt->grant);
  engine.run();
  ASSERT_FALSE(rows.held("x"));
  const std::size_t before = count("release");
  rows.give_to("x", attempt->grant->owner.to_string(), 24h);  // the first try, carried out at last
  engine.advance(5s);
  EXPECT_GT(count("release"), before);
  EXPECT_FALSE(rows.held("x"));
}

// --- Giving up -------------------------------------------------------------------------------------------------------

TEST_P(PostgresRowLocksTrouble, WhoGaveUpInDoubtIsForgotten) {
  const LockRequest request{.name = "x", .owner = client->host.new_owner_id(), .holder = "host:1:test", .lease = 10s};
  std::optional<TryOutcome> outcome;
  const auto ask = [&] {
    client->locks->try_acquire(request, [&](TryOutcome o) { outcome = std::move(o); });
    engine.advance(1s);  // and a connection is there again
  };
  lose_answers_to("acquire");
  ask();
  ASSERT_TRUE(outcome);
  ASSERT_EQ(outcome->failure.code, errc::ambiguous);
  client->locks->abandon(request);
  rows.rows["x"].locked = true;
  outcome.reset();
  ask();
  ASSERT_TRUE(outcome);
  EXPECT_EQ(outcome->status, TryOutcome::Status::busy) << "nothing is known of this owner any more";
}

}  // namespace

}  // namespace dlock::postgres

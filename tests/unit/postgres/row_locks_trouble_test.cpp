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

TEST_P(PostgresRowLocksTrouble, WhoAsksAgainAfterALostAnswerGetsHisOwnGrant) {
  lose_answers_to("acquire");
  const auto attempt = client->contend("x", true, 10s);
  engine.run();
  ASSERT_EQ(attempt->unreachable_reports.size(), 1U);
  const std::int64_t token = rows.rows["x"].token;
  const TimePoint first_sent = server.queries.at(0).sent;
  engine.advance(1s);
  ASSERT_TRUE(attempt->grant);
  EXPECT_EQ(attempt->grant->owner, attempt->request.owner);
  EXPECT_EQ(attempt->grant->token.value(), static_cast<std::uint64_t>(token));
  EXPECT_EQ(count("acquire"), 2U);
  EXPECT_GT(last("acquire").sent, first_sent);
  EXPECT_EQ(attempt->grant->valid_until, lease_valid_until(last("acquire").sent, 10s)) << "the newer request's";
}

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

TEST_P(PostgresRowLocksTrouble, ATryWhoseAnswerIsLostIsTakenBack) {
  lose_answers_to("acquire");
  auto attempt = client->contend("x", false);
  engine.run();
  ASSERT_TRUE(failed(*attempt, errc::ambiguous));
  EXPECT_TRUE(rows.held("x"));
  attempt.reset();
  engine.advance(500ms);
  EXPECT_FALSE(rows.held("x"));
  EXPECT_EQ(count("release"), 1U);
  engine.advance(1h);
  EXPECT_EQ(count("release"), 2U) << "once more for what the broken connection may deliver late, and no more";
}

// The server was slow to carry it out, and the connection broke before.
TEST_P(PostgresRowLocksTrouble, ATryThatIsCarriedOutLateIsTakenBack) {
  next_reply = [this](const FakeQuery& query) -> std::optional<FakeReply> {
    if (rows.words_for(query) != "acquire") return std::nullopt;
    (void)engine.schedule(engine.now() + 700ms, [this, query] { (void)rows.carry_out(query); });
    return FakeReply::lost();
  };
  auto attempt = client->contend("x", false);
  engine.run();
  attempt.reset();
  engine.advance(800ms);
  EXPECT_TRUE(rows.held("x"));
  engine.advance(1s);
  EXPECT_FALSE(rows.held("x"));
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

TEST_P(PostgresRowLocksTrouble, WhoGivesUpBeforeThereIsAConnectionLeavesNothing) {
  server.dialling = FakeServer::Dialling::silence;
  auto attempt = client->contend("x");
  engine.advance(1s);
  attempt.reset();
  server.dialling = FakeServer::Dialling::accept;
  engine.advance(1h);
  EXPECT_FALSE(rows.held("x"));
}

TEST_P(PostgresRowLocksTrouble, WhatIsGrantedToWhoeverHasGivenUpIsReleased) {
  reply_to("acquire", FakeReply::held());
  auto attempt = client->contend("x");
  engine.run();
  attempt.reset();
  heal();
  server.release();
  engine.run();
  EXPECT_EQ(said(), (Words{"acquire", "release"}));
  EXPECT_FALSE(rows.held("x"));
}

TEST_P(PostgresRowLocksTrouble, WhoGivesUpWhileHisTryIsLostIsCleanedUpAfter) {
  reply_to("acquire", FakeReply::held());
  auto attempt = client->contend("x");
  engine.run();
  attempt.reset();
  lose_answers_to("acquire");
  server.release();
  engine.advance(1s);
  EXPECT_FALSE(rows.held("x"));
  EXPECT_GE(count("release"), 1U);
}

TEST_P(PostgresRowLocksTrouble, WhoGivesUpWhileHeWaitsLeavesNothing) {
  rows.give_to("x", "somebody", 24h);
  auto attempt = client->contend("x");
  engine.advance(300ms);
  attempt.reset();
  server.queries.clear();
  engine.advance(1h);
  EXPECT_TRUE(server.queries.empty());
}

TEST_P(PostgresRowLocksTrouble, WhoGivesUpWhileTheServerCannotBeReachedIsCleanedUpIfHeWasInDoubt) {
  for (const bool in_doubt : {false, true}) {
    server.dialling = in_doubt ? FakeServer::Dialling::accept : FakeServer::Dialling::fail;
    client = make();
    if (in_doubt) lose_answers_to("acquire");
    auto attempt = client->contend("x");
    engine.run();
    server.dialling = FakeServer::Dialling::fail;
    engine.advance(5s);
    EXPECT_FALSE(attempt->unreachable_reports.empty());
    attempt.reset();
    engine.advance(5s);
    EXPECT_EQ(rows.held("x"), in_doubt);
    heal();
    server.dialling = FakeServer::Dialling::accept;
    server.queries.clear();
    engine.advance(3s);
    EXPECT_FALSE(rows.held("x"));
    EXPECT_EQ(count("release"), in_doubt ? 2U : 0U);
  }
}

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

TEST_P(PostgresRowLocksTrouble, WhenWhoWasToldGivesUpTheNextGetsTheLock) {
  rows.give_to("x", "somebody", 24h);
  auto first = client->contend("x");
  engine.run();
  const auto second = client->contend("x");
  engine.run();
  reply_to("acquire", FakeReply::held());
  rows.free("x");
  engine.run();
  const TimePoint now = engine.now();
  first.reset();
  engine.run();
  heal();
  server.release();
  engine.run();
  EXPECT_TRUE(second->grant) << "without waiting for anything";
  EXPECT_EQ(engine.now(), now);
}

// --- The end ---------------------------------------------------------------------------------------------------------

TEST_P(PostgresRowLocksTrouble, ClosesAtOnceWhereThereIsNothingToCleanUp) {
  bool closed = false;
  client->locks->close([&] { closed = true; });
  engine.run();
  EXPECT_TRUE(closed);
  EXPECT_EQ(server.dialled, 0);
}

TEST_P(PostgresRowLocksTrouble, ClosesWhenNothingIsLeft) {
  reply_to("acquire", FakeReply::held());
  auto attempt = client->contend("x");
  engine.run();
  attempt.reset();
  bool closed = false;
  client->locks->close([&] { closed = true; });
  engine.advance(1s);
  EXPECT_FALSE(closed);
  lose_answers_to("acquire");
  server.dialling = FakeServer::Dialling::fail;
  server.release();
  engine.advance(5s);
  EXPECT_FALSE(closed) << "its try may have been granted";
  server.dialling = FakeServer::Dialling::accept;
  engine.advance(2s);
  EXPECT_TRUE(closed);
  EXPECT_FALSE(rows.held("x"));
}

TEST_P(PostgresRowLocksTrouble, AClientMayGoAtAnyMoment) {
  for (int events = 0; events < 60; ++events) {
    rows.give_to("busy", "somebody", 24h);
    for (const char* const name : {"x", "y"}) {
      if (rows.held(name)) rows.free(name);
    }
    client = make();
    auto held = client->contend("x");
    auto lost = client->contend("y");
    auto waiting = client->contend("busy");
    auto next = client->contend("busy");
    next_reply = [this, left = events % 7](const FakeQuery& query) mutable -> std::optional<FakeReply> {
      if (left-- != 0) return std::nullopt;
      (void)rows.carry_out(query);
      return FakeReply::lost();
    };
    for (int i = 0; i < events; ++i) {
      if (!engine.run_one()) engine.advance(10ms);
      if (i == 20 && held->grant) client->renew(*held->grant);
      if (i == 25 && held->grant) client->release(*held->grant);
      if (i == 30) lost.reset();
      if (i == 35) rows.free("busy");
      if (i == 40) waiting.reset();
    }
    held.reset();
    lost.reset();
    waiting.reset();
    next.reset();
    if (events % 2 == 0) client->locks->close([] {});
    client.reset();
    const std::size_t sent = server.queries.size();
    engine.advance(1h);
    ASSERT_EQ(server.queries.size(), sent);
    ASSERT_EQ(server.open(), 0U);
    ASSERT_EQ(engine.pending_timers(), 0U);
  }
}

}  // namespace

}  // namespace dlock::postgres

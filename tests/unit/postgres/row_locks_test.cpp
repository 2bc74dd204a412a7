// The row strategies as the core uses them: acquires that wait, give up and are told; renewals; releases.
#include "backends/postgres/row_locks.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "rows_fixture.hpp"

namespace dlock::postgres {

namespace {

using ReleaseStatus = ReleaseOutcome::Status;
using RenewStatus = RenewOutcome::Status;
using Words = std::vector<std::string>;

class PostgresRowLocks : public RowsTest, public testing::WithParamInterface<Strategy> {
 protected:
  PostgresRowLocks() : RowsTest(GetParam()) {}
};
INSTANTIATE_TEST_SUITE_P(Strategies, PostgresRowLocks, testing::Values(Strategy::table, Strategy::optimistic),
                         [](const auto& strategy) { return std::string(to_string(strategy.param)); });

class PostgresTableLocks : public RowsTest {
 protected:
  PostgresTableLocks() : RowsTest(Strategy::table) {}
};
class PostgresOptimisticLocks : public RowsTest {
 protected:
  PostgresOptimisticLocks() : RowsTest(Strategy::optimistic) {}
};

// --- On the wire -----------------------------------------------------------------------------------------------------

TEST_P(PostgresRowLocks, ALoneAcquireAndALoneReleaseAreOneStatementEach) {
  const auto client = make();
  const auto attempt = client->contend("x");
  engine.run();
  ASSERT_TRUE(attempt->grant);
  client->release(*attempt->grant);
  engine.advance(1h);
  EXPECT_EQ(client->releases.at(0).status, ReleaseStatus::released);
  EXPECT_EQ(said(), (Words{"acquire", "release"}));
  EXPECT_EQ(server.dialled, 1) << "nobody listens where nobody waits";
}

TEST_P(PostgresRowLocks, AcquiresOfOneTurnAreOneQuery) {
  const auto client = make();
  std::vector<std::unique_ptr<Attempt>> attempts;
  for (int i = 0; i < 64; ++i) attempts.push_back(client->contend("x" + std::to_string(i)));
  engine.run();
  EXPECT_EQ(said(), Words{"acquire_many"});
  for (const auto& attempt : attempts) ASSERT_TRUE(attempt->grant);
  for (const auto& attempt : attempts) client->release(*attempt->grant);
  engine.run();
  EXPECT_EQ(said(), (Words{"acquire_many", "release_many"}));
}

TEST_P(PostgresRowLocks, ATryThatFindsItBusyAsksOnce) {
  rows.give_to("x", "somebody", 24h);
  const auto client = make();
  const auto attempt = client->contend("x", false);
  engine.advance(1h);
  EXPECT_EQ(attempt->busy_reports, 1);
  EXPECT_EQ(said(), Words{"acquire"});
  EXPECT_EQ(server.dialled, 1);
}

TEST_P(PostgresRowLocks, ALeaseCountsFromWhenItsRequestWasSent) {
  server.dialling = FakeServer::Dialling::fail;
  const auto client = make();
  const auto attempt = client->contend("x", true, 10s);
  engine.advance(3s);
  EXPECT_FALSE(attempt->unreachable_reports.empty());
  server.dialling = FakeServer::Dialling::accept;
  reply_to("acquire", FakeReply::held());
  engine.advance(1100ms);
  ASSERT_FALSE(server.queries.empty());
  const TimePoint sent = server.queries.back().sent;
  engine.advance(1s);
  heal();
  server.release();
  engine.run();
  ASSERT_TRUE(attempt->grant);
  EXPECT_EQ(attempt->grant->valid_until, lease_valid_until(sent, 10s));
  EXPECT_EQ(attempt->grant->token.value(), static_cast<std::uint64_t>(rows.rows["x"].token));
}

TEST_P(PostgresRowLocks, SaysWhatItCan) {
  const auto client = make();
  const Capabilities can = client->locks->capabilities();
  EXPECT_EQ(can.strategy, to_string(GetParam()));
  EXPECT_EQ(can.lease_kind, LeaseKind::per_lock);
  EXPECT_FALSE(can.fair);
  EXPECT_TRUE(can.wakes_waiters);
  EXPECT_FALSE(make(Pooler::transaction)->locks->capabilities().wakes_waiters);
}

// --- Waiting ---------------------------------------------------------------------------------------------------------

// Time stands still in it, so there can be no poll interval.
TEST_P(PostgresRowLocks, AReleaseByAnotherClientHandsTheLockOver) {
  const auto holder = make();
  const auto waiter = make();
  const auto held = holder->contend("x");
  engine.run();
  const auto waiting = waiter->contend("x");
  engine.run();
  EXPECT_EQ(waiting->busy_reports, 2) << "once more after it began to watch";
  const TimePoint now = engine.now();
  holder->release(*held->grant);
  engine.run();
  ASSERT_TRUE(waiting->grant);
  EXPECT_EQ(engine.now(), now);
  EXPECT_GT(waiting->grant->token, held->grant->token);
}

TEST_P(PostgresRowLocks, OneReleaseWakesOneOfAClientsWaiters) {
  const auto holder = make();
  const auto waiter = make();
  const auto held = holder->contend("x");
  engine.run();
  std::vector<std::unique_ptr<Attempt>> waiting;
  for (int i = 0; i < 20; ++i) waiting.push_back(waiter->contend("x"));
  engine.run();
  server.queries.clear();
  holder->release(*held->grant);
  engine.run();
  EXPECT_EQ(said(), (Words{"release", "acquire"}));
  for (int next = 0; next < 20; ++next) {
    int granted = 0;
    for (auto& attempt : waiting) {
      if (!attempt || !attempt->grant) continue;
      ++granted;
      const Grant grant = *attempt->grant;
      attempt.reset();
      waiter->release(grant);
    }
    ASSERT_EQ(granted, 1) << next;
    engine.run();
  }
}

TEST_P(PostgresRowLocks, NothingIsNotifiedWhereNobodyWaits) {
  const auto client = make();
  for (int i = 0; i < 5; ++i) {
    const auto attempt = client->contend("x");
    engine.run();
    client->release(*attempt->grant);
    engine.run();
  }
  EXPECT_EQ(rows.notifications, 0);
}

TEST_P(PostgresRowLocks, AWakeUpThatIsLostIsMadeUpForByAsking) {
  const auto holder = make();
  const auto waiter = make();
  const auto held = holder->contend("x");
  engine.run();
  const auto waiting = waiter->contend("x");
  engine.run();
  rows.notify = nullptr;
  holder->release(*held->grant);
  engine.advance(2s);
  EXPECT_TRUE(waiting->grant);
}

// A lease that runs out tells nobody.
TEST_F(PostgresTableLocks, WhoWaitsIsThereWhenALeaseRunsOut) {
  rows.give_to("x", "somebody", 5300ms);
  const auto client = make();
  const auto waiting = client->contend("x");
  engine.advance(5299ms);
  EXPECT_FALSE(waiting->grant);
  engine.advance(4ms);
  EXPECT_TRUE(waiting->grant);
}

TEST_P(PostgresRowLocks, ARowThatIsBeingChangedIsLookedAtAgainSoon) {
  rows.give_to("x", "somebody", 24h);
  rows.free("x");
  rows.rows["x"].locked = true;
  const auto client = make();
  const auto waiting = client->contend("x");
  engine.advance(1s);
  EXPECT_FALSE(waiting->grant);
  EXPECT_LT(count("acquire"), 200U);
  rows.rows["x"].locked = false;
  engine.advance(60ms);
  EXPECT_TRUE(waiting->grant);
}

TEST_P(PostgresRowLocks, AnErrorThatPassesIsWaitedFor) {
  const auto client = make();
  for (const char* const sqlstate : {"40001", "55P03", "53300", "57P01", "25006", "26000"}) {
    reply_to("acquire", FakeReply::refused(sqlstate));
    const auto waiting = client->contend("x");
    engine.advance(20s);
    EXPECT_FALSE(waiting->reported() && waiting->unreachable_reports.empty()) << sqlstate;
    EXPECT_FALSE(waiting->failure) << sqlstate;
    heal();
    engine.advance(5s);
    ASSERT_TRUE(waiting->grant) << sqlstate;
    client->release(*waiting->grant);
    engine.advance(5s);
  }
}

TEST_P(PostgresRowLocks, AnErrorThatStaysIsFinal) {
  const auto client = make();
  const std::pair<const char*, errc> cases[] = {
      {"42501", errc::access_denied}, {"22P05", errc::invalid_argument}, {"XX000", errc::protocol}};
  for (const auto& [sqlstate, code] : cases) {
    reply_to("acquire", FakeReply::refused(sqlstate));
    auto waiting = client->contend("x");
    engine.run();
    ASSERT_TRUE(waiting->failure) << sqlstate;
    EXPECT_EQ(waiting->failure->code, code) << sqlstate;
    waiting.reset();
    engine.advance(5s);
  }
  EXPECT_EQ(count("release"), 0U) << "it was rolled back, so there is nothing to clean up";
}

// --- Poolers ---------------------------------------------------------------------------------------------------------

TEST_P(PostgresRowLocks, BehindAPoolerWaitersAskAndTheUserIsWarnedOnce) {
  server.info.pooled = true;
  rows.give_to("x", "somebody", 24h);
  const auto client = make();
  const auto first = client->contend("x");
  const auto second = client->contend("x");
  engine.advance(1min);
  ASSERT_EQ(client->host.warnings.size(), 1U);
  EXPECT_EQ(client->host.warnings[0].reason.code, errc::unsupported);
  EXPECT_EQ(server.dialled, 1);
  EXPECT_GE(count("acquire"), 30U);
  rows.free("x");
  engine.advance(2s);
  EXPECT_TRUE(first->grant || second->grant);
}

TEST_P(PostgresRowLocks, WhoSaysThatThereIsAPoolerIsNotWarned) {
  server.info.pooled = true;
  rows.give_to("x", "somebody", 24h);
  const auto client = make(Pooler::transaction);
  const auto waiting = client->contend("x");
  engine.advance(1min);
  EXPECT_TRUE(client->host.warnings.empty());
  EXPECT_EQ(server.dialled, 1);
  const std::size_t asked = count("acquire");
  EXPECT_GE(asked, 60'000U / 150U);
  EXPECT_LE(asked, 60'000U / 50U + 2);
  rows.free("x");
  engine.advance(150ms);
  EXPECT_TRUE(waiting->grant);
}

// --- Answers that are lost -------------------------------------------------------------------------------------------

TEST_P(PostgresRowLocks, WhoAsksAgainAfterALostAnswerGetsHisOwnGrant) {
  const auto client = make();
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

TEST_P(PostgresRowLocks, WhoAsksAgainIsNotTakenForOneOfTheOthers) {
  const auto client = make();
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

TEST_P(PostgresRowLocks, ATryWhoseAnswerIsLostIsTakenBack) {
  const auto client = make();
  lose_answers_to("acquire");
  auto attempt = client->contend("x", false);
  engine.run();
  ASSERT_TRUE(attempt->failure);
  EXPECT_EQ(attempt->failure->code, errc::ambiguous);
  EXPECT_TRUE(rows.held("x"));
  attempt.reset();
  engine.advance(500ms);
  EXPECT_FALSE(rows.held("x"));
  EXPECT_EQ(count("release"), 1U);
  engine.advance(1h);
  EXPECT_EQ(count("release"), 2U) << "once more for what the broken connection may deliver late, and no more";
}

// The server was slow to carry it out, and the connection broke before.
TEST_P(PostgresRowLocks, ATryThatIsCarriedOutLateIsTakenBack) {
  const auto client = make();
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
TEST_P(PostgresRowLocks, WhoIsInDoubtStaysSoWhileTheRowIsBeingChanged) {
  const auto client = make();
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

TEST_P(PostgresRowLocks, WhoWasInDoubtAndFindsSomebodyElseIsNotInDoubtAnyMore) {
  const auto client = make();
  reply_to("acquire", FakeReply::lost(), 1);
  auto attempt = client->contend("x");
  engine.run();
  rows.give_to("x", "somebody", 24h);
  engine.advance(1s);
  EXPECT_GE(attempt->busy_reports, 1);
  attempt.reset();
  engine.advance(5s);
  EXPECT_EQ(count("release"), 0U);
}

// --- Giving up -------------------------------------------------------------------------------------------------------

TEST_P(PostgresRowLocks, WhoGivesUpBeforeThereIsAConnectionLeavesNothing) {
  server.dialling = FakeServer::Dialling::silence;
  const auto client = make();
  auto attempt = client->contend("x");
  engine.advance(1s);
  attempt.reset();
  server.dialling = FakeServer::Dialling::accept;
  engine.advance(1h);
  EXPECT_FALSE(rows.held("x"));
}

TEST_P(PostgresRowLocks, WhatIsGrantedToWhoeverHasGivenUpIsReleased) {
  const auto client = make();
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

TEST_P(PostgresRowLocks, WhoGivesUpWhileHisTryIsLostIsCleanedUpAfter) {
  const auto client = make();
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

TEST_P(PostgresRowLocks, WhoGivesUpWhileHeWaitsLeavesNothing) {
  rows.give_to("x", "somebody", 24h);
  const auto client = make();
  auto attempt = client->contend("x");
  engine.advance(300ms);
  attempt.reset();
  server.queries.clear();
  engine.advance(1h);
  EXPECT_TRUE(server.queries.empty());
}

TEST_P(PostgresRowLocks, WhoGivesUpWhileTheServerCannotBeReachedIsCleanedUpIfHeWasInDoubt) {
  for (const bool in_doubt : {false, true}) {
    server.dialling = in_doubt ? FakeServer::Dialling::accept : FakeServer::Dialling::fail;
    const auto client = make();
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

TEST_P(PostgresRowLocks, WhenWhoWasToldGivesUpTheNextGetsTheLock) {
  const auto client = make();
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

// --- Renewing and releasing ------------------------------------------------------------------------------------------

TEST_P(PostgresRowLocks, ARenewalCountsFromWhenItWasSent) {
  const auto client = make();
  const auto attempt = client->contend("x", true, 10s);
  engine.advance(3s);
  reply_to("renew_many", FakeReply::held());
  const TimePoint sent = engine.now();
  client->renew(*attempt->grant);
  engine.advance(1s);
  heal();
  server.release();
  engine.run();
  ASSERT_EQ(client->renewals.size(), 1U);
  EXPECT_EQ(client->renewals[0].status, RenewStatus::renewed);
  EXPECT_EQ(client->renewals[0].valid_until, lease_valid_until(sent, 10s));
}

TEST_P(PostgresRowLocks, ALockOfSomebodyElseIsLost) {
  const auto client = make();
  const auto attempt = client->contend("x");
  engine.run();
  rows.give_to("x", "somebody", 24h);
  client->renew(*attempt->grant);
  client->release(*attempt->grant);
  engine.run();
  EXPECT_EQ(client->renewals.at(0).status, RenewStatus::lost);
  EXPECT_EQ(client->releases.at(0).status, ReleaseStatus::not_owner);
  EXPECT_EQ(rows.rows["x"].owner, "somebody");
}

TEST_F(PostgresTableLocks, ALeaseThatRanOutOnTheServerIsNotBroughtBack) {
  const auto client = make();
  const auto attempt = client->contend("x", true, 1s);
  engine.advance(1s);
  client->renew(*attempt->grant);
  engine.run();
  EXPECT_EQ(client->renewals.at(0).status, RenewStatus::lost);
}

TEST_P(PostgresRowLocks, ARenewalIsAnsweredWithinAQuarterOfTheLease) {
  const auto client = make();
  const auto attempt = client->contend("x", true, 2s);
  engine.run();
  reply_to("renew_many", FakeReply::held());
  client->renew(*attempt->grant);
  engine.advance(500ms);
  ASSERT_EQ(client->renewals.size(), 1U);
  EXPECT_EQ(client->renewals[0].status, RenewStatus::failed);
  heal();
  server.release();
  engine.run();
  EXPECT_EQ(client->renewals.size(), 1U);
}

TEST_P(PostgresRowLocks, ARowThatSomebodyHasLockedDelaysNoOtherLock) {
  const auto client = make();
  const auto stuck = client->contend("x");
  const auto other = client->contend("y");
  engine.run();
  rows.rows["x"].locked = true;
  const TimePoint now = engine.now();
  client->renew(*stuck->grant);
  client->renew(*other->grant);
  const auto third = client->contend("z");
  engine.run();
  EXPECT_EQ(engine.now(), now);
  EXPECT_TRUE(third->grant);
  ASSERT_EQ(client->renewals.size(), 2U);
  EXPECT_EQ(client->renewals[0].status, RenewStatus::renewed);
  EXPECT_EQ(client->renewals[1].status, RenewStatus::failed) << "asked for three times";
  EXPECT_EQ(client->renewals[1].failure.code, errc::unavailable);
  client->release(*stuck->grant);
  engine.run();
  ASSERT_EQ(client->releases.size(), 1U);
  EXPECT_EQ(client->releases[0].status, ReleaseStatus::failed);
  rows.rows["x"].locked = false;
  engine.advance(1s);
  EXPECT_FALSE(rows.held("x")) << "it goes on by itself";
}

TEST_P(PostgresRowLocks, ARowThatSomebodyHasLockedForAMomentIsAskedForAgain) {
  const auto client = make();
  const auto attempt = client->contend("x");
  engine.run();
  next_reply = [this, left = 2](const FakeQuery& query) mutable -> std::optional<FakeReply> {
    rows.rows["x"].locked = left-- > 0;
    (void)query;
    return std::nullopt;
  };
  client->renew(*attempt->grant);
  engine.run();
  EXPECT_EQ(client->renewals.at(0).status, RenewStatus::renewed);
  EXPECT_EQ(count("renew_many"), 3U);
}

TEST_P(PostgresRowLocks, AReleaseWhoseAnswerIsLostWasARelease) {
  const auto client = make();
  const auto attempt = client->contend("x");
  engine.run();
  lose_answers_to("release");
  client->release(*attempt->grant);
  engine.advance(1s);
  ASSERT_EQ(client->releases.size(), 1U);
  EXPECT_EQ(client->releases[0].status, ReleaseStatus::released);
  EXPECT_FALSE(rows.held("x"));
}

TEST_P(PostgresRowLocks, AReleaseThatCannotBeSentGoesOnInTheBackground) {
  const auto client = make();
  const auto attempt = client->contend("x");
  engine.run();
  server.dialling = FakeServer::Dialling::fail;
  server.break_connections();
  engine.run();
  client->release(*attempt->grant);
  engine.advance(4s);
  EXPECT_EQ(client->releases.at(0).status, ReleaseStatus::failed);
  EXPECT_TRUE(rows.held("x"));
  server.dialling = FakeServer::Dialling::accept;
  engine.advance(2s);
  EXPECT_FALSE(rows.held("x"));
}

// --- optimistic: taking over -----------------------------------------------------------------------------------------

TEST_F(PostgresOptimisticLocks, ADeadHoldersLockIsTakenOverWhenItStoodStillForOneLease) {
  const auto holder = make();
  const auto held = holder->contend("x", true, 10s);
  engine.advance(4s);
  const TimePoint first_seen = engine.now();
  const auto client = make();
  const auto waiting = client->contend("x", true, 60s);
  engine.advance(10s - 1ns);
  EXPECT_FALSE(waiting->grant) << "one lease of the holder's, from when it was first seen";
  engine.advance(10ms);
  ASSERT_TRUE(waiting->grant);
  EXPECT_GT(waiting->grant->token, held->grant->token);
  EXPECT_GE(last("acquire").sent, first_seen + 10s);
  EXPECT_LE(last("acquire").sent, first_seen + 10s + 5ms);
}

TEST_F(PostgresOptimisticLocks, ItStandsStillFromWhenTheAnswerThatShowedItArrived) {
  const auto holder = make();
  const auto held = holder->contend("x", true, 10s);
  engine.run();
  const auto client = make();
  // The server looked early, and its answer is under way for long.
  next_reply = [](const FakeQuery&) { return FakeReply::held(); };
  const auto waiting = client->contend("x");
  engine.advance(1s);
  holder->renew(*held->grant);
  const FakeReply as_it_was = rows.carry_out(last("acquire"));
  engine.advance(1s);
  next_reply = [&](const FakeQuery& query) -> std::optional<FakeReply> {
    if (rows.words_for(query) == "acquire") return as_it_was;
    return std::nullopt;
  };
  server.release();
  engine.run();
  const TimePoint arrived = engine.now();
  ASSERT_EQ(holder->renewals.size(), 1U);
  EXPECT_EQ(waiting->busy_reports, 2);
  heal();
  engine.advance(10s - 1ns);
  EXPECT_FALSE(waiting->grant);
  EXPECT_LT(holder->renewals[0].valid_until, arrived + 10s);
}

TEST_F(PostgresOptimisticLocks, NobodyTakesOverBeforeTheHolderKnowsThatItIsOver) {
  for (const auto late : {0ms, 1ms, 500ms, 2000ms}) {
    const std::string name = "x" + std::to_string(late.count());
    const auto holder = make();
    reply_to("acquire", FakeReply::held());
    const auto held = holder->contend(name, true, 5s);
    engine.advance(late);
    heal();
    server.release();
    engine.run();
    ASSERT_TRUE(held->grant);
    const auto client = make();
    const auto waiting = client->contend(name);
    while (!waiting->grant) {
      engine.advance(1ms);
      if (waiting->grant) {
        EXPECT_GE(engine.now(), held->grant->valid_until);
      }
    }
  }
}

TEST_F(PostgresOptimisticLocks, ARenewalStartsItAgain) {
  const auto holder = make();
  const auto held = holder->contend("x", true, 10s);
  engine.run();
  const auto client = make();
  const auto waiting = client->contend("x");
  for (int i = 0; i < 5; ++i) {
    engine.advance(9s);
    holder->renew(*held->grant);
    engine.run();
    ASSERT_EQ(holder->renewals.back().status, RenewStatus::renewed);
  }
  const TimePoint renewed = engine.now();
  engine.advance(10s - 1ns);
  EXPECT_FALSE(waiting->grant);
  engine.advance(3s);
  ASSERT_TRUE(waiting->grant);
  EXPECT_GE(last("acquire").sent, renewed + 10s);
  holder->renew(*held->grant);
  engine.run();
  EXPECT_EQ(holder->renewals.back().status, RenewStatus::lost);
}

TEST_F(PostgresOptimisticLocks, WhatOneClientSawIsNotAnothers) {
  rows.give_to("x", "somebody", 10s);
  const auto first = make();
  const auto early = first->contend("x");
  engine.advance(9s);
  const auto second = make();
  auto late = second->contend("x", false);
  engine.advance(500ms);
  EXPECT_EQ(late->busy_reports, 1);
  late = second->contend("x", false);
  engine.advance(400ms);
  EXPECT_EQ(late->busy_reports, 1);
  EXPECT_FALSE(early->grant);
  engine.advance(200ms);
  EXPECT_TRUE(early->grant);
}

// Tries that do not wait take over, too, when they are far enough apart.
TEST_F(PostgresOptimisticLocks, TriesFromTimeToTimeTakeOver) {
  rows.give_to("x", "somebody", 10s);
  const auto client = make();
  const auto first = client->contend("x", false);
  engine.advance(10s);
  const auto second = client->contend("x", false);
  engine.run();
  EXPECT_FALSE(first->grant);
  EXPECT_TRUE(second->grant);
}

TEST_F(PostgresOptimisticLocks, OneOfTwoTakesOver) {
  rows.give_to("x", "somebody", 10s);
  const auto first = make();
  const auto second = make();
  const auto a = first->contend("x", true, 60s);
  const auto b = second->contend("x", true, 60s);
  engine.advance(15s);
  EXPECT_NE(a->grant.has_value(), b->grant.has_value());
}

// --- The end ---------------------------------------------------------------------------------------------------------

TEST_P(PostgresRowLocks, ClosesAtOnceWhereThereIsNothingToCleanUp) {
  const auto client = make();
  bool closed = false;
  client->locks->close([&] { closed = true; });
  engine.run();
  EXPECT_TRUE(closed);
  EXPECT_EQ(server.dialled, 0);
}

TEST_P(PostgresRowLocks, ClosesWhenNothingIsLeft) {
  const auto client = make();
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

TEST_P(PostgresRowLocks, AClientMayGoAtAnyMoment) {
  for (int events = 0; events < 60; ++events) {
    rows.give_to("busy", "somebody", 24h);
    for (const char* const name : {"x", "y"}) {
      if (rows.held(name)) rows.free(name);
    }
    auto client = make();
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

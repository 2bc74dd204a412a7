// The row strategies as the core uses them: acquires that wait and are told, renewals, releases.
#include "backends/postgres/rows/row_locks.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "rows_fixture.hpp"
#include "tests/simulation/postgres/array_elements.hpp"

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

// --- On the wire -----------------------------------------------------------------------------------------------------

TEST_P(PostgresRowLocks, ALoneAcquireAndALoneReleaseAreOneStatementEach) {
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
  std::vector<std::unique_ptr<Attempt>> attempts;
  for (int i = 0; i < 64; ++i) attempts.push_back(client->contend("x" + std::to_string(i)));
  engine.run();
  EXPECT_EQ(said(), Words{"acquire"});
  for (const auto& attempt : attempts) ASSERT_TRUE(attempt->grant);
  for (const auto& attempt : attempts) client->release(*attempt->grant);
  engine.run();
  EXPECT_EQ(said(), (Words{"acquire", "release"}));
}

TEST_P(PostgresRowLocks, ATryThatFindsItBusyAsksOnce) {
  rows.give_to("x", "somebody", 24h);
  const auto attempt = client->contend("x", false);
  engine.advance(1h);
  EXPECT_EQ(attempt->busy_reports, 1);
  EXPECT_EQ(said(), Words{"acquire"});
  EXPECT_EQ(server.dialled, 1);
}

TEST_P(PostgresRowLocks, ALeaseCountsFromWhenItsRequestWasSent) {
  server.dialling = FakeServer::Dialling::fail;
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
  const Capabilities can = client->locks->capabilities();
  EXPECT_EQ(can.strategy, to_string(GetParam()));
  EXPECT_EQ(can.lease_kind, LeaseKind::per_lock);
  EXPECT_FALSE(can.fair);
  EXPECT_TRUE(can.can_inspect && can.can_list && can.can_break && can.can_forget && can.can_forget_idle);
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
  const auto waiting = client->contend("x");
  engine.advance(1s);
  EXPECT_FALSE(waiting->grant);
  EXPECT_LT(count("acquire"), 200U);
  rows.rows["x"].locked = false;
  engine.advance(60ms);
  EXPECT_TRUE(waiting->grant);
}

TEST_P(PostgresRowLocks, AnErrorThatPassesIsWaitedFor) {
  for (const char* const sqlstate : {"40001", "55P03", "53300", "57P01", "25006", "26000", "XX002", "P0001"}) {
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
  const std::pair<const char*, errc> cases[] = {
      {"42501", errc::access_denied}, {"22P05", errc::invalid_argument}, {"22003", errc::protocol}};
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
  client = make(Pooler::transaction);
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

// --- Renewing and releasing ------------------------------------------------------------------------------------------

TEST_P(PostgresRowLocks, ARenewalCountsFromWhenItWasSent) {
  const auto attempt = client->contend("x", true, 10s);
  engine.advance(3s);
  reply_to("renew", FakeReply::held());
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
  const auto attempt = client->contend("x", true, 1s);
  engine.advance(1s);
  client->renew(*attempt->grant);
  engine.run();
  EXPECT_EQ(client->renewals.at(0).status, RenewStatus::lost);
}

TEST_P(PostgresRowLocks, ARenewalIsAnsweredWithinAQuarterOfTheLease) {
  const auto attempt = client->contend("x", true, 2s);
  engine.run();
  reply_to("renew", FakeReply::held());
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
  const auto stuck = client->contend("x");
  const auto other = client->contend("y");
  engine.run();
  rows.rows["x"].locked = true;
  client->renew(*stuck->grant);
  client->renew(*other->grant);
  const auto third = client->contend("z");
  engine.run();
  EXPECT_TRUE(third->grant);
  EXPECT_EQ(client->renewals.size(), 1U);
  engine.advance(100ms);
  ASSERT_EQ(client->renewals.size(), 2U);
  EXPECT_EQ(client->renewals[0].status, RenewStatus::renewed);
  EXPECT_EQ(client->renewals[1].status, RenewStatus::failed) << "asked for several times";
  EXPECT_EQ(client->renewals[1].failure.code, errc::unavailable);
  client->release(*stuck->grant);
  engine.advance(100ms);
  ASSERT_EQ(client->releases.size(), 1U);
  EXPECT_EQ(client->releases[0].status, ReleaseStatus::failed);
  rows.rows["x"].locked = false;
  engine.advance(1s);
  EXPECT_FALSE(rows.held("x")) << "it goes on by itself";
}

// Others who wait have it marked, for example.
TEST_P(PostgresRowLocks, ARowThatSomebodyHasLockedForAMomentIsAskedForAgain) {
  const auto attempt = client->contend("x");
  engine.run();
  for (const auto moment : {0ms, 2ms, 30ms}) {
    rows.rows["x"].locked = true;
    client->renew(*attempt->grant);
    engine.advance(moment);
    EXPECT_TRUE(client->renewals.empty());
    rows.rows["x"].locked = false;
    engine.advance(50ms);
    ASSERT_EQ(client->renewals.size(), 1U) << moment.count();
    EXPECT_EQ(client->renewals[0].status, RenewStatus::renewed) << moment.count();
    client->renewals.clear();
  }
  rows.rows["x"].locked = true;
  client->release(*attempt->grant);
  engine.advance(30ms);
  rows.rows["x"].locked = false;
  engine.advance(50ms);
  ASSERT_EQ(client->releases.size(), 1U);
  EXPECT_EQ(client->releases[0].status, ReleaseStatus::released);
}

TEST_P(PostgresRowLocks, ARowThatIsLockedIsNotAskedForPastTheDeadline) {
  const auto attempt = client->contend("x", true, 40ms);
  engine.run();
  rows.rows["x"].locked = true;
  client->renew(*attempt->grant);
  engine.advance(10ms);
  ASSERT_EQ(client->renewals.size(), 1U);
  EXPECT_EQ(client->renewals[0].status, RenewStatus::failed);
}

TEST_P(PostgresRowLocks, AReleaseWhoseAnswerIsLostWasARelease) {
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

}  // namespace

}  // namespace dlock::postgres

#include "backends/postgres/session_locks/for_update_contention.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "for_update_fixture.hpp"
#include "tests/unit/support/reports.hpp"

namespace dlock::postgres {

namespace {

using Status = ReleaseOutcome::Status;

// --- Waiting in the server -------------------------------------------------------------------------------------------

TEST_F(ForUpdateTest, AWaiterStandsInTheServersQueue) {
  const auto attempt = wait_for_taken("a");
  EXPECT_EQ(attempt->busy_reports, 1);
  EXPECT_FALSE(attempt->grant);
  ASSERT_EQ(server.queries.size(), 2U);
  EXPECT_EQ(words(server.queries[1]), (Words{"rollback", "begin", "set_patience", "lock", "heartbeat"}));
  EXPECT_EQ(server.queries[1].connection, server.queries[0].connection);
  engine.advance(2s);
  free_elsewhere("a");
  ASSERT_TRUE(attempt->grant);
  EXPECT_EQ(attempt->grant->valid_until, lease_valid_until(server.queries[1].sent, lease));
  EXPECT_EQ(release(*attempt->grant).status, Status::released);
}

TEST_F(ForUpdateTest, NobodyWaitsForEver) {
  const auto attempt = wait_for_taken("a");
  const int ms = std::stoi(server.queries[1].commands[2].params[0].value());
  EXPECT_GE(ms, 30'000);
  EXPECT_LE(ms, 60'000);
}

TEST_F(ForUpdateTest, AWaiterAsksNothingElseMeanwhile) {
  server.replies_to_heartbeats = true;
  const auto attempt = wait_for_taken("a");
  engine.advance(25s);
  EXPECT_EQ(server.queries.size(), 2U);
  EXPECT_EQ(server.open(), 1U);
}

TEST_F(ForUpdateTest, AfterASliceTheNextOneBegins) {
  const auto attempt = wait_for_taken("a");
  for (std::size_t slice = 3; slice < 6; ++slice) {
    engine.advance(31s);
    server.reply = [](const FakeQuery&) { return FakeReply::refused("57014", 3); };
    rows.open.clear();
    server.release();
    server.reply = [this](const FakeQuery& query) { return rows.reply(query); };
    engine.run();
    ASSERT_EQ(server.queries.size(), slice);
    EXPECT_EQ(words(server.queries.back()), (Words{"rollback", "begin", "set_patience", "lock", "heartbeat"}));
  }
  EXPECT_EQ(server.dialled, 1);
  EXPECT_FALSE(attempt->failure);
  free_elsewhere("a");
  EXPECT_TRUE(attempt->grant);
}

TEST_F(ForUpdateTest, AServerThatForgetsTheSliceIsGivenUp) {
  const auto attempt = wait_for_taken("a");
  engine.advance(70s);
  EXPECT_FALSE(attempt->unreachable_reports.empty());
  EXPECT_GE(server.dialled, 2);
  EXPECT_EQ(server.open(), 1U);
}

TEST_F(ForUpdateTest, AGrantAfterALongWaitIsConfirmedBeforeItIsReported) {
  server.replies_to_heartbeats = true;
  const auto attempt = wait_for_taken("a");
  engine.advance(25s);  // longer than the lease
  bool answers = false;
  rows.locked.erase("a");
  server.reply = [&](const FakeQuery& query) {
    return is_heartbeat(query) && !answers ? FakeReply::held() : rows.reply(query);
  };
  server.release();
  engine.advance(1s);
  EXPECT_FALSE(attempt->grant);
  ASSERT_EQ(words(server.queries.back()), Words{"heartbeat"});
  answers = true;
  server.release();
  engine.run();
  ASSERT_TRUE(attempt->grant);
  EXPECT_EQ(attempt->grant->valid_until, lease_valid_until(server.queries.back().sent, lease));
}

TEST_F(ForUpdateTest, AGrantThatCannotBeConfirmedIsNone) {
  server.replies_to_heartbeats = true;
  const auto attempt = wait_for_taken("a");
  engine.advance(25s);
  rows.locked.erase("a");
  int connection = 0;
  server.reply = [&](const FakeQuery& query) {
    if (!is_heartbeat(query) || connection == query.connection) return rows.reply(query);
    if (connection != 0) return rows.reply(query);
    connection = query.connection;
    rows.forget(query.connection);
    return FakeReply::lost();
  };
  server.release();
  engine.run();
  EXPECT_FALSE(attempt->grant);
  EXPECT_EQ(attempt->unreachable_reports.size(), 1U);
  engine.advance(1s);
  ASSERT_TRUE(attempt->grant) << "over another connection";
  EXPECT_NE(server.queries.back().connection, connection);
}

TEST_F(ForUpdateTest, ADeadlockOrACancelledQueryIsTriedAgain) {
  for (const char* const state : {"40P01", "40001", "57014"}) {
    const auto attempt = wait_for_taken("a");
    rows.open.clear();
    server.reply = [&](const FakeQuery& query) {
      return query.uses(locks->statements().lock) ? FakeReply::refused(state, 3) : rows.reply(query);
    };
    server.release();
    engine.run();
    server.reply = [this](const FakeQuery& query) { return rows.reply(query); };
    rows.locked.erase("a");
    engine.advance(1s);
    ASSERT_TRUE(attempt->grant) << state;
    EXPECT_TRUE(attempt->unreachable_reports.empty());
    EXPECT_EQ(release(*attempt->grant).status, Status::released);
  }
}

TEST_F(ForUpdateTest, AServerThatLacksSomethingIsAskedAgainLater) {
  server.reply = [](const FakeQuery& query) {
    return query.commands.size() > 1 ? FakeReply::refused("53200", 1) : FakeReply{};
  };
  const auto attempt = wait_for("a");
  ASSERT_EQ(attempt->unreachable_reports.size(), 1U);
  EXPECT_EQ(attempt->unreachable_reports[0].code, errc::unavailable);
  server.reply = [this](const FakeQuery& query) { return rows.reply(query); };
  engine.advance(1s);
  EXPECT_TRUE(attempt->grant);
}

TEST_F(ForUpdateTest, AConnectionThatBreaksIsReplacedAndTheWaitGoesOn) {
  const auto attempt = wait_for_taken("a");
  server.dialling = FakeServer::Dialling::fail;
  server.break_connections();
  rows.open.clear();
  engine.advance(5s);
  EXPECT_FALSE(attempt->failure);
  EXPECT_GE(attempt->unreachable_reports.size(), 2U);
  server.dialling = FakeServer::Dialling::accept;
  engine.advance(2s);
  EXPECT_EQ(words(server.queries.back()), (Words{"begin", "set_patience", "lock", "heartbeat"}));
  free_elsewhere("a");
  EXPECT_TRUE(attempt->grant);
  using State = ConnectionEvent::State;
  EXPECT_EQ(host.connections, (std::vector{State::connected, State::reconnecting, State::connected}));
}

TEST_F(ForUpdateTest, AStandbyIsNotAskedAndThePrimaryIsLookedFor) {
  server.info.standby = true;
  const auto attempt = wait_for("a");
  ASSERT_FALSE(attempt->unreachable_reports.empty());
  EXPECT_EQ(attempt->unreachable_reports[0].code, errc::unavailable);
  EXPECT_TRUE(server.queries.empty());
  server.info.standby = false;
  engine.advance(1s);
  EXPECT_TRUE(attempt->grant);
}

TEST_F(ForUpdateTest, AServerThatBecameAStandbyIsLeft) {
  server.reply = [](const FakeQuery& query) {
    return query.commands.size() > 1 ? FakeReply::refused("25006", 1) : FakeReply{};
  };
  const auto attempt = wait_for("a");
  server.reply = [this](const FakeQuery& query) { return rows.reply(query); };
  engine.advance(1s);
  ASSERT_TRUE(attempt->grant);
  EXPECT_EQ(server.dialled, 2);
}

TEST_F(ForUpdateTest, ATryThatRunsOutOfTimeSaysWhatTheTroubleWas) {
  server.reply = [this](const FakeQuery& query) {
    if (query.commands.size() < 2) return FakeReply{};
    return server.dialled == 1 ? FakeReply::refused("25006", 1) : FakeReply::held();
  };
  const auto attempt = contend("a", false);
  engine.advance(options.response_timeout - 1ms);  // before the core says that nothing came
  ASSERT_TRUE(failed(*attempt, errc::unavailable, "standby"));
  EXPECT_EQ(server.dialled, 2);
}

TEST_F(ForUpdateTest, AWaiterWhoseRowIsStillBeingInsertedWaitsForThat) {
  const Statement& ensure = locks->statements().ensure;
  bool inserting = true;
  server.reply = [&](const FakeQuery& query) {
    if (!inserting || !query.uses(ensure)) return rows.reply(query);
    rows.forget(query.connection);
    return server.count(ensure) == 1 ? FakeReply::refused("57014", 2) : FakeReply::held();
  };
  const auto attempt = contend("new", true);
  engine.advance(1s);
  EXPECT_EQ(attempt->busy_reports, 1);
  EXPECT_EQ(server.count(ensure), 2U);
  ASSERT_TRUE(server.queries.back().uses(ensure));
  const int ms = std::stoi(server.queries.back().commands[1].params[0].value());
  EXPECT_GE(ms, 30'000);
  inserting = false;
  server.release();
  engine.advance(1s);
  EXPECT_TRUE(attempt->grant);
}

TEST_F(ForUpdateTest, ARowThatIsRemovedAfterAWaitIsInsertedAsOftenAsAnyOther) {
  const auto attempt = wait_for_taken("a");
  rows.rows.erase("a");
  int removals = 2;
  server.reply = [&](const FakeQuery& query) {
    FakeReply reply = rows.reply(query);
    if (query.uses(locks->statements().ensure) && removals-- > 0) rows.rows.erase("a");
    return reply;
  };
  free_elsewhere("a");
  EXPECT_FALSE(attempt->failure);
  EXPECT_TRUE(attempt->grant);
  EXPECT_EQ(server.count(locks->statements().ensure), 3U);
}

TEST_F(ForUpdateTest, AServerThatDoesNotWaitIsNotAskedAllTheTime) {
  server.reply = [](const FakeQuery& query) {
    return query.commands.size() > 1 ? FakeReply::refused("55P03", 1) : FakeReply{};
  };
  const auto attempt = contend("a", true);
  engine.advance(10s);
  EXPECT_LT(server.queries.size(), 100U);
  EXPECT_EQ(server.dialled, 1);
  server.reply = [this](const FakeQuery& query) { return rows.reply(query); };
  engine.advance(1s);
  EXPECT_TRUE(attempt->grant);
}

// --- Giving up -------------------------------------------------------------------------------------------------------

TEST_F(ForUpdateTest, AWaiterThatGivesUpLeavesTheQueueByClosingItsConnection) {
  const auto attempt = wait_for_taken("a");
  attempt->contention.reset();
  EXPECT_EQ(server.open(), 0U);
  EXPECT_FALSE(attempt->grant);
}

TEST_F(ForUpdateTest, WhatIsGrantedToATryThatWasGivenUpIsRolledBackBehindIt) {
  server.reply = [](const FakeQuery&) { return FakeReply::held(); };
  const auto attempt = wait_for("a");
  attempt->contention.reset();
  engine.run();
  EXPECT_EQ(words(server.queries.back()), Words{"rollback"});
  server.reply = [this](const FakeQuery& query) { return rows.reply(query); };
  server.release();
  engine.run();
  EXPECT_FALSE(attempt->grant);
  EXPECT_TRUE(rows.locked.empty());
  EXPECT_TRUE(rows.open.empty());
  EXPECT_TRUE(try_lock("a")->grant);
  EXPECT_EQ(server.dialled, 1);
}

TEST_F(ForUpdateTest, AGrantThatIsBeingConfirmedAndGivenUpIsRolledBack) {
  server.replies_to_heartbeats = true;
  const auto attempt = wait_for_taken("a");
  engine.advance(25s);
  rows.locked.erase("a");
  server.reply = [&](const FakeQuery& query) { return is_heartbeat(query) ? FakeReply::held() : rows.reply(query); };
  server.release();
  engine.run();
  ASSERT_EQ(words(server.queries.back()), Words{"heartbeat"});
  attempt->contention.reset();
  server.reply = [this](const FakeQuery& query) { return rows.reply(query); };
  server.release();
  engine.run();
  EXPECT_FALSE(attempt->grant);
  EXPECT_TRUE(rows.locked.empty());
}

TEST_F(ForUpdateTest, GivingUpBeforeThereIsAConnectionAsksNothing) {
  server.dialling = FakeServer::Dialling::silence;
  const auto attempt = wait_for("a");
  attempt->contention.reset();
  engine.run();
  EXPECT_EQ(server.open(), 0U);
  engine.advance(10s);
  EXPECT_TRUE(server.queries.empty());
}

TEST_F(ForUpdateTest, GivingUpDuringAPauseLeavesNothing) {
  server.dialling = FakeServer::Dialling::fail;
  const auto attempt = wait_for("a");
  attempt->contention.reset();
  server.dialling = FakeServer::Dialling::accept;
  engine.advance(10s);
  EXPECT_EQ(server.dialled, 1);
}

TEST_F(ForUpdateTest, ARollbackThatIsNotAnsweredClosesTheConnection) {
  server.reply = [](const FakeQuery&) { return FakeReply::held(); };
  const auto attempt = wait_for("a");
  attempt->contention.reset();
  engine.advance(10s);
  EXPECT_EQ(server.open(), 0U);
}

// --- A pooler --------------------------------------------------------------------------------------------------------

TEST_F(ForUpdateTest, APoolerIsRefusedBeforeAnythingIsAsked) {
  server.info.pooled = true;
  const auto attempt = wait_for("a");
  ASSERT_TRUE(failed(*attempt, errc::unsupported, "pooler=session"));
  engine.advance(1s);
  EXPECT_TRUE(server.queries.empty());
  EXPECT_EQ(server.open(), 0U);
}

}  // namespace

}  // namespace dlock::postgres

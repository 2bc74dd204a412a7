#include "backends/postgres/session_locks/for_update_contention.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "for_update_fixture.hpp"
#include "tests/unit/support/reports.hpp"

namespace dlock::postgres {

namespace {

using Released = ReleaseOutcome::Status;

// --- Waiting in the server -------------------------------------------------------------------------------------------

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

TEST_F(ForUpdateTest, ARollbackThatIsNotAnsweredClosesTheConnection) {
  server.reply = [](const FakeQuery&) { return FakeReply::held(); };
  const auto attempt = wait_for("a");
  attempt->contention.reset();
  engine.advance(10s);
  EXPECT_EQ(server.open(), 0U);
}

}  // namespace

}  // namespace dlock::postgres

#include "backends/postgres/session_locks/for_update.hpp"

#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "for_update_fixture.hpp"
#include "tests/unit/support/reports.hpp"

namespace dlock::postgres {

namespace {

using Released = ReleaseOutcome::Status;
using State = ConnectionEvent::State;

// --- Taking ----------------------------------------------------------------------------------------------------------

TEST_F(ForUpdateTest, TakesAFreeLockInOneRoundTrip) {
  const auto attempt = try_lock("a");
  ASSERT_TRUE(attempt->grant);
  ASSERT_EQ(server.queries.size(), 1U);
  EXPECT_EQ(words(server.queries[0]), (Words{"begin", "try_lock", "heartbeat"}));
  EXPECT_EQ(server.queries[0].commands[1].params, (std::vector<Parameter>{"a", "host:1:test"}));
  EXPECT_EQ(server.queries[0].purpose.session_lease, lease);
  EXPECT_EQ(attempt->grant->name, "a");
  EXPECT_EQ(attempt->grant->owner, attempt->request.owner);
  EXPECT_EQ(attempt->grant->token, FencingToken(1001));
  EXPECT_EQ(attempt->grant->valid_until, lease_valid_until(server.queries[0].sent, lease));
}

TEST_F(ForUpdateTest, TheLeaseCountsFromBeforeTheQueryWasSent) {
  bool hold = true;
  server.reply = [&](const FakeQuery& query) { return hold ? FakeReply::held() : rows.reply(query); };
  const auto attempt = contend("a", false);
  engine.advance(1500ms);
  ASSERT_FALSE(attempt->reported());
  hold = false;
  server.release();
  engine.run();
  ASSERT_TRUE(attempt->grant);
  EXPECT_EQ(attempt->grant->valid_until, lease_valid_until(server.queries[0].sent, lease));
}

TEST_F(ForUpdateTest, ATryOfAHeldLockIsBusyAndLeavesNoTransactionOpen) {
  take_elsewhere("a");
  const auto attempt = try_lock("a");
  EXPECT_EQ(attempt->busy_reports, 1);
  EXPECT_FALSE(attempt->failure);
  ASSERT_EQ(server.queries.size(), 2U);
  EXPECT_EQ(words(server.queries[1]), Words{"rollback"});
  EXPECT_TRUE(rows.open.empty());
  EXPECT_TRUE(try_lock("b")->grant);
  EXPECT_EQ(server.dialled, 1) << "the connection is as good as new";
}

TEST_F(ForUpdateTest, ANameThatWasNeverUsedGetsItsRowInATransactionOfItsOwn) {
  const auto attempt = try_lock("new");
  ASSERT_TRUE(attempt->grant);
  ASSERT_EQ(server.queries.size(), 3U);
  EXPECT_EQ(words(server.queries[1]), (Words{"rollback", "set_patience", "ensure"}));
  EXPECT_EQ(words(server.queries[2]), (Words{"begin", "try_lock", "heartbeat"}));
  EXPECT_EQ(rows.rows.count("new"), 1U);
}

TEST_F(ForUpdateTest, ARowThatSomebodyInsertsAndDoesNotCommitIsBusy) {
  rows.insertion_refused = "57014";
  const auto attempt = try_lock("new");
  EXPECT_EQ(attempt->busy_reports, 1);
  EXPECT_EQ(server.queries[1].commands[1].params[0], "200") << "in milliseconds";
}

TEST_F(ForUpdateTest, ARowThatIsRemovedAgainAndAgainIsAnError) {
  server.reply = [](const FakeQuery&) { return FakeReply{}; };
  const auto attempt = try_lock("a");
  ASSERT_TRUE(failed(*attempt, errc::protocol));
}

TEST_F(ForUpdateTest, ATokenThatIsNoneIsAnErrorAndLeavesNothing) {
  for (const char* const token : {"0", "-5", "x", ""}) {
    server.reply = [&](const FakeQuery& query) {
      FakeReply reply = rows.reply(query);
      if (query.uses(locks->statements().try_lock)) reply.results.at(1).rows[0][0] = token;
      return reply;
    };
    const auto attempt = try_lock("a");
    ASSERT_TRUE(failed(*attempt, errc::protocol)) << token;
    EXPECT_TRUE(rows.locked.empty());
  }
}

TEST_F(ForUpdateTest, ATryEndsInTime) {
  server.reply = [](const FakeQuery&) { return FakeReply::refused("40001", 1); };
  const auto refused = contend("a", false);
  engine.advance(2s);
  ASSERT_TRUE(failed(*refused, errc::unavailable));
  server.reply = [](const FakeQuery&) { return FakeReply::held(); };
  const auto unanswered = contend("a", false);
  engine.advance(2s);
  ASSERT_TRUE(failed(*unanswered, errc::ambiguous));
  EXPECT_EQ(server.open(), 0U) << "what is granted late goes with the connection";
  server.dialling = FakeServer::Dialling::silence;
  const auto unreachable = contend("a", false);
  engine.advance(2s);
  ASSERT_TRUE(failed(*unreachable, errc::unavailable));
}

TEST_F(ForUpdateTest, ALeaseLongerThanTheSessionLivesIsRefused) {
  test::Attempt attempt;
  attempt.request = {.name = "a", .owner = host.new_owner_id(), .holder = "h", .lease = lease + 1ms, .wait = true};
  attempt.contention = locks->contend(attempt.request, attempt);
  ASSERT_TRUE(failed(attempt, errc::invalid_argument, "lease"));
  EXPECT_EQ(server.dialled, 0);
  EXPECT_EQ(locks->capabilities().max_lease, lease);
}

// --- Holding ---------------------------------------------------------------------------------------------------------

TEST_F(ForUpdateTest, AnErrorInsideTheHoldersTransactionIsALostLock) {
  server.replies_to_heartbeats = true;
  bool failing = false;
  server.reply = [&](const FakeQuery& query) {
    return is_heartbeat(query) && failing ? FakeReply::refused("57014") : rows.reply(query);
  };
  const auto attempt = try_lock("a");
  engine.advance(5s);
  EXPECT_TRUE(host.losses.empty());
  failing = true;
  engine.advance(3s);
  ASSERT_EQ(host.losses.size(), 1U);
  EXPECT_EQ(server.open(), 0U);
}

TEST_F(ForUpdateTest, ASilentServerIsALostLockByTheEndOfTheLease) {
  server.replies_to_heartbeats = true;
  const auto attempt = try_lock("a");
  const TimePoint safe = attempt->grant->valid_until;
  server.reply = [](const FakeQuery&) { return FakeReply::held(); };
  engine.advance(safe - engine.now());
  ASSERT_EQ(host.losses.size(), 1U);
  EXPECT_EQ(server.open(), 0U);
}

TEST_F(ForUpdateTest, AnAnswerThatComesAfterTheLeaseDoesNotBringItBack) {
  server.replies_to_heartbeats = true;
  const auto attempt = try_lock("a");
  server.reply = [](const FakeQuery&) { return FakeReply::held(); };
  engine.advance(3s);  // a heartbeat is under way
  server.reply = [&](const FakeQuery& query) { return rows.reply(query); };
  server.release(false);
  host.extensions.clear();
  engine.sleep_through(lease);
  EXPECT_EQ(host.losses.size(), 1U);
  EXPECT_TRUE(host.extensions.empty());
  EXPECT_EQ(server.open(), 0U) << "the row must not stay locked with nobody to release it";
}

TEST_F(ForUpdateTest, LocksDoNotShareAConnection) {
  const auto a = try_lock("a");
  const auto b = try_lock("b");
  EXPECT_EQ(server.open(), 2U);
  server.break_connections("gone", 1);
  engine.run();
  ASSERT_TRUE(lost(host, a->grant->owner));
  EXPECT_EQ(release(*b->grant).status, Released::released);
}

TEST_F(ForUpdateTest, TheBackendDoesNotRenew) {
  const auto attempt = try_lock("a");
  std::optional<RenewOutcome> outcome;
  locks->renew(*attempt->grant, [&](RenewOutcome o) { outcome = std::move(o); });
  ASSERT_TRUE(outcome);
  EXPECT_EQ(outcome->status, RenewOutcome::Status::failed);
}

// --- Releasing -------------------------------------------------------------------------------------------------------

TEST_F(ForUpdateTest, OnlyTheOwnerReleases) {
  const auto attempt = try_lock("a");
  Grant other = *attempt->grant;
  other.owner = host.new_owner_id();
  EXPECT_EQ(release(other).status, Released::not_owner);
  EXPECT_EQ(rows.locked.size(), 1U);
  EXPECT_EQ(release(*attempt->grant).status, Released::released);
  EXPECT_EQ(release(*attempt->grant).status, Released::not_owner);
}

TEST_F(ForUpdateTest, ACommitThatIsNotAnsweredIsNotConfirmedAndClosesTheConnection) {
  const auto attempt = try_lock("a");
  server.reply = [](const FakeQuery&) { return FakeReply::held(); };
  const ReleaseOutcome outcome = release(*attempt->grant);
  EXPECT_EQ(outcome.status, Released::failed);
  EXPECT_EQ(outcome.failure.code, errc::ambiguous);
  EXPECT_EQ(server.open(), 0U);
  EXPECT_TRUE(host.losses.empty()) << "it had been given back";
}

// --- Waiting ---------------------------------------------------------------------------------------------------------

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

// --- Connections -----------------------------------------------------------------------------------------------------

TEST_F(ForUpdateTest, ATryIsToldWhichLimitIsReached) {
  const auto [a, b, c] = take_all();
  const auto d = try_lock("d");
  ASSERT_TRUE(failed(*d, errc::unavailable, "max_connections=3"));
  EXPECT_EQ(server.open(), 3U);
}

TEST_F(ForUpdateTest, WhoComesLaterDoesNotOvertakeThoseWhoWaitForAConnection) {
  const auto [a, b, c] = take_all();
  const auto d = wait_for("d");
  locks->release(*a->grant, [](const ReleaseOutcome&) {});
  while (server.count(locks->statements().commit) == 1 && engine.run_one()) {
    if (d->grant) break;
    const auto hasty = contend("e", false);  // at every moment of the hand-over
    EXPECT_FALSE(hasty->grant);
  }
  engine.run();
  EXPECT_TRUE(d->grant);
}

TEST_F(ForUpdateTest, TheObserverIsToldWhenTheServerIsThereAndWhenItIsNot) {
  const auto a = try_lock("a");
  const auto b = try_lock("b");
  EXPECT_EQ(host.connections, std::vector{State::connected});
  server.dialling = FakeServer::Dialling::fail;
  server.break_connections();
  engine.run();
  EXPECT_EQ(host.connections, (std::vector{State::connected, State::reconnecting}));
  const auto c = wait_for("c");
  engine.advance(5s);
  EXPECT_EQ(host.connections.size(), 2U);
  server.dialling = FakeServer::Dialling::accept;
  engine.advance(2s);
  EXPECT_TRUE(c->grant);
  EXPECT_EQ(host.connections, (std::vector{State::connected, State::reconnecting, State::connected}));
}

TEST_F(ForUpdateTest, ConnectionsThatNobodyNeedsAreClosedAfterAWhile) {
  const auto a = try_lock("a");
  EXPECT_EQ(release(*a->grant).status, Released::released);
  EXPECT_EQ(server.open(), 1U);
  engine.advance(60s);
  EXPECT_EQ(server.open(), 0U);
}

// --- The end ---------------------------------------------------------------------------------------------------------

TEST_F(ForUpdateTest, NothingIsCalledAfterTheEnd) {
  const auto held = try_lock("a");
  auto trying = contend("b", false);
  bool answered = false;
  locks->release(*held->grant, [&](const ReleaseOutcome&) { answered = true; });
  trying->contention.reset();
  locks.reset();
  engine.advance(10s);
  EXPECT_FALSE(answered);
  EXPECT_FALSE(trying->reported());
  EXPECT_EQ(server.open(), 0U);
}

TEST_F(ForUpdateTest, SaysWhatItCan) {
  const Capabilities caps = locks->capabilities();
  EXPECT_EQ(caps.backend, "postgresql");
  EXPECT_EQ(caps.strategy, "for-update");
  EXPECT_EQ(caps.lease_kind, LeaseKind::session);
  EXPECT_EQ(caps.fencing, FencingDurability::wall_clock);
  EXPECT_FALSE(caps.fair);
  EXPECT_TRUE(caps.wakes_waiters && caps.wakes_one && caps.counts_waiters);
  EXPECT_TRUE(caps.can_inspect && caps.can_list && caps.can_break && caps.can_forget && caps.can_forget_idle);
}

}  // namespace

}  // namespace dlock::postgres

// Locks that live in sessions of the server: what both strategies promise, and what is for-update's alone.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "backend_fixture.hpp"

namespace dlock::postgres {

namespace {

using test::failed;
using test::lost;
using State = ConnectionEvent::State;

class BackendSessions : public SessionsTest {};
INSTANTIATE_TEST_SUITE_P(, BackendSessions, testing::Values(Strategy::advisory, Strategy::for_update),
                         name_of_strategy);
class BackendForUpdate : public SessionsTest {};
INSTANTIATE_TEST_SUITE_P(, BackendForUpdate, testing::Values(Strategy::for_update), name_of_strategy);

TEST_P(BackendSessions, FreeLock_OneRoundTripEachWay) {
  EXPECT_EQ(release(*ours, *acquire("x"), 0s), "released");  // there are a session and a row now
  sent.clear();
  const TimePoint asked = engine.now();
  const auto x = acquire("x", true);
  ASSERT_TRUE(x->grant);
  EXPECT_EQ(sent, Words{is_advisory() ? "fence.try_lock" : "begin row_lock.try_lock heartbeat"});
  EXPECT_EQ(x->grant->name, "x");
  EXPECT_EQ(x->grant->owner, x->request.owner);
  EXPECT_EQ(x->grant->valid_until, lease_valid_until(asked, options.lease));
  const FakeQuery query = queries(try_word()).back();
  const std::vector<Parameter> named{"x", "host:1:test"};
  const std::vector<Parameter> keyed{lock_key(options, "x").parameter, "x", "host:1:test"};
  EXPECT_EQ(query.commands.at(is_advisory() ? 0 : 1).params, is_advisory() ? keyed : named);
  EXPECT_EQ(query.purpose.word, is_advisory() ? "locks" : "transaction");
  EXPECT_EQ(query.purpose.session_lease, options.lease);
  sent.clear();
  EXPECT_EQ(release(*ours, *x, 0s), "released");
  EXPECT_EQ(sent, Words{std::string(release_word())});
  EXPECT_EQ(server.wire().dialled, 1);
}

// Hazard: `NOWAIT` leaves a failed transaction behind
TEST_P(BackendSessions, HeldLock_BusyAndTheSessionIsReused) {
  const auto holder = taken_by_others("x");
  const auto x = acquire("x");
  EXPECT_EQ(said(*x), "busy");
  EXPECT_EQ(owners("x"), 1U);
  if (!is_advisory()) {
    EXPECT_EQ(sent.back(), "rollback") << "a transaction that failed stays open";
  }
  const int dialled = server.wire().dialled;
  EXPECT_EQ(said(*acquire("y")), "granted");
  EXPECT_EQ(server.wire().dialled, dialled);
}

TEST_P(BackendSessions, LeaseBeyondSessions_IsRefused) {
  ours->lease = options.lease + 1ms;
  const auto x = acquire("x", true);
  EXPECT_TRUE(failed(*x, errc::invalid_argument, "raise lease in the URL"));
  EXPECT_EQ(server.wire().dialled, 0);
}

// Shows: hole postgresql-pooler
TEST_P(BackendSessions, ForeignSessionOrNoToken_IsNoGrant) {
  for (const std::string token : {"0", "-5", "x", "", "5 of another session"}) {
    for (const bool wait : {false, true}) {
      SCOPED_TRACE(token + (wait ? ", after a wait" : ""));
      const bool elsewhere = token.size() > 2;
      if (elsewhere && !is_advisory()) continue;
      const std::string_view word = wait ? wait_word() : try_word();
      auto held = acquire("held");
      const std::size_t before = queries(word).size();
      std::unique_ptr<Attempt> holder = wait ? taken_by_others("x") : nullptr;
      auto x = wait ? acquire("x", true) : nullptr;
      server.falsify = [&](int process, std::string_view of, Rows& rows) {
        if (process != 1 || rows.empty() || of.find(word) == of.npos) return;
        rows.rows[0].at(elsewhere ? 1 : 0) = elsewhere ? "4711" : token;
      };
      if (wait) {
        EXPECT_EQ(release(*others, *holder, 0s), "released");
      }
      if (!wait) x = acquire("x");
      const bool refused = elsewhere || (is_advisory() && !wait);
      EXPECT_TRUE(
          failed(*x, refused ? errc::unsupported : errc::protocol, refused ? "a different session answered" : "token"));
      server.falsify = nullptr;
      x.reset();
      engine.advance(1s);
      EXPECT_EQ(owners("x"), 0U);
      EXPECT_EQ(ours->host.losses.size(), is_advisory() && !wait ? 1U : 0U) << "the session of the tries is given up";
      ours->host.losses.clear();
      (void)release(*ours, *held);
      EXPECT_EQ(owners("held"), 0U);
      EXPECT_EQ(release(*ours, *granted_after_a_wait("y")), "released");
      EXPECT_NE(queries(word).back().connection, queries(word).at(before).connection) << "it is not used again";
    }
  }
}

// Shows: loss-signal
// Hazard: a wait delays the releases and heartbeats of other locks
TEST_P(BackendSessions, ConnectionOfOneLockBreaks_OnlyThatLockIsLost) {
  const auto other = acquire("other");
  const auto x = granted_after_a_wait("x");
  const int session = queries(wait_word()).back().connection;
  EXPECT_NE(session, queries(try_word()).front().connection);
  server.wire().break_connections("gone", session);
  engine.run();
  EXPECT_TRUE(lost(ours->host, x->request.owner));
  EXPECT_EQ(release(*ours, *x), "not ours");
  EXPECT_EQ(release(*ours, *other), "released");
}

// Hazard: `tcp_user_timeout` detects nothing on a Unix socket
TEST_P(BackendSessions, UnresponsiveServer_LockIsLostByTheEndOfTheLease) {
  const auto x = acquire("x");
  spoil("SHOW", Fate::hold);
  engine.advance(x->grant->valid_until - engine.now() - 1ms);
  EXPECT_TRUE(ours->host.losses.empty());
  engine.advance(1ms);
  EXPECT_TRUE(lost(ours->host, x->request.owner));
}

// Shows: renewal
TEST_P(BackendSessions, AnswerAfterTheLease_DoesNotRevive) {
  const auto x = acquire("x");
  spoil("SHOW", Fate::hold, 1);
  engine.advance(3s);
  heal();  // the answer is in the network's buffers
  ours->host.extensions.clear();
  engine.sleep_through(options.lease);
  EXPECT_TRUE(lost(ours->host, x->request.owner));
  EXPECT_TRUE(ours->host.extensions.empty());
  EXPECT_EQ(owners("x"), 0U) << "a lock without an owner is released by none";
}

// Hazard: a lease that is too short for heartbeats
TEST_P(BackendSessions, Heartbeats_KeepTheShortestLease) {
  options.lease = ours->backend->capabilities().min_lease;
  ours.emplace(engine, server, 1, options);
  const auto x = acquire("x");
  for (int i = 0; i < 200; ++i) engine.advance(options.lease / 20);
  EXPECT_TRUE(x->grant && ours->host.losses.empty());
}

// An error does not undo the grant of an advisory lock; and the fake reports a session that has a lock twice.
TEST_P(BackendSessions, GrantAsASliceEnds_IsHeldOnce) {
  const auto holder = taken_by_others("x");
  const auto x = acquire("x", true);
  engine.advance(2s);
  refuse(wait_word(), is_advisory() ? "55P03" : "57014", 1);
  EXPECT_EQ(release(*others, *holder, 0s), "released");
  engine.advance(100ms);
  ASSERT_TRUE(x->grant);
  EXPECT_EQ(release(*ours, *x), "released");
  EXPECT_EQ(owners("x"), 0U);
}

TEST_P(BackendSessions, ServerReturnsAtOnce_RequestsAreSpaced) {
  const auto holder = taken_by_others("x");
  refuse(wait_word(), is_advisory() ? "55P03" : "57014");
  const auto x = acquire("x", true);
  engine.advance(10s);
  EXPECT_LT(sent.size(), 100U);
  EXPECT_LE(server.wire().dialled, 5);
  heal();
  EXPECT_EQ(release(*others, *holder, 0s), "released");
  engine.advance(2s);
  EXPECT_EQ(said(*x), "granted");
}

TEST_P(BackendSessions, IdleConnection_IsClosedAfterAWhile) {
  for (const char* const name : {"a", "b"}) {
    EXPECT_EQ(release(*ours, *acquire(name), 0s), "released");
    EXPECT_EQ(server.wire().open(), 1U);
  }
  engine.advance(60s);
  EXPECT_EQ(server.wire().open(), is_advisory() ? 1U : 0U);
}

TEST_P(BackendForUpdate, NewName_RowIsInsertedInItsOwnTransaction) {
  EXPECT_EQ(said(*acquire("new")), "granted");
  EXPECT_EQ(sent, (Words{"begin row_lock.try_lock heartbeat", "rollback set_patience row_lock.ensure",
                         "begin row_lock.try_lock heartbeat"}));
}

TEST_P(BackendForUpdate, RowBeingInserted_TryIsBusyAndWaiterWaits) {
  refuse("row_lock.ensure", "57014");
  EXPECT_EQ(said(*acquire("new")), "busy");
  const auto waiting = acquire("new", true);
  engine.advance(1s);
  EXPECT_EQ(said(*waiting), "busy");
  std::vector<int> patience;  // in milliseconds
  for (const FakeQuery& query : queries("row_lock.ensure")) {
    patience.push_back(std::stoi(query.commands.at(1).params.at(0).value()));
  }
  EXPECT_EQ(patience.front(), 200);
  EXPECT_GE(*std::max_element(patience.begin(), patience.end()), 30'000);
  heal();
  engine.advance(1s);
  EXPECT_EQ(said(*waiting), "granted");
}

TEST_P(BackendForUpdate, RowRemoved_IsInsertedAgainAFewTimes) {
  int removals = 0;
  server.falsify = [&](int process, std::string_view word, Rows& rows) {
    const bool locks = word == "row_lock.try_lock" || word == "row_lock.lock";
    if (process == 1 && locks && removals-- > 0) rows.rows.clear();
  };
  for (const bool wait : {false, true}) {
    const auto holder = wait ? taken_by_others("x") : nullptr;
    removals = wait ? 0 : 3;
    auto x = acquire("x", wait);
    if (wait) {
      removals = 3;
      EXPECT_EQ(release(*others, *holder, 0s), "released");
    }
    EXPECT_EQ(said(*x), "granted");
    EXPECT_EQ(queries("row_lock.ensure").size(), wait ? 6U : 3U);
    EXPECT_EQ(release(*ours, *x), "released");
  }
  removals = 4;
  EXPECT_TRUE(failed(*acquire("x"), errc::protocol, "keeps removing the row"));
}

TEST_P(BackendSessions, Capabilities_MatchTheStrategy) {
  const Capabilities can = ours->backend->capabilities();
  EXPECT_EQ(can.strategy, is_advisory() ? "advisory" : "for-update");
  EXPECT_EQ(can.lease_kind, LeaseKind::session);
  EXPECT_EQ(can.fencing, FencingDurability::wall_clock);
  EXPECT_EQ(can.fair, is_advisory());
  EXPECT_TRUE(can.wakes_waiters && can.wakes_one && can.counts_waiters && can.one_waiter_per_client);
  EXPECT_TRUE(can.can_inspect && can.can_list && can.can_break && can.can_forget && can.can_forget_idle);
  EXPECT_EQ(can.max_lease, options.lease);
}

TEST_P(BackendSessions, Observer_IsNotifiedOfOutageAndRecovery) {
  const auto a = acquire("a");
  const auto b = acquire("b");
  const auto news = [this] {
    std::vector<State> all = ours->host.connections;
    all.erase(std::unique(all.begin(), all.end()), all.end());
    return all;
  };
  EXPECT_EQ(ours->host.connections, std::vector{State::connected});
  server.wire().dialling = FakeServer::Dialling::fail;
  server.cut(1);
  engine.run();
  EXPECT_EQ(news(), (std::vector{State::connected, State::reconnecting}));
  const auto c = acquire("c", true);
  engine.advance(5s);
  EXPECT_LE(ours->host.connections.size(), 3U);
  server.wire().dialling = FakeServer::Dialling::accept;
  engine.advance(2s);
  EXPECT_EQ(said(*c), "granted");
  EXPECT_EQ(news(), (std::vector{State::connected, State::reconnecting, State::connected}));
}

}  // namespace

}  // namespace dlock::postgres

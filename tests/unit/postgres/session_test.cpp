#include "backends/postgres/sessions/session.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <dlock/spi/backend.hpp>

#include "backends/postgres/options.hpp"
#include "tests/simulation/postgres/fake_connection.hpp"
#include "tests/support/manual_engine.hpp"

namespace dlock::postgres {

namespace {

using namespace std::chrono_literals;
using Words = std::vector<std::string>;

struct RecordingUser final : Session::User {
  void session_ready() override {
    heard.emplace_back("ready");
    if (when_ready) when_ready();
  }
  void session_down(const Failure& why, bool was_ready) override {
    heard.emplace_back(was_ready ? "broken" : "no connection");
    reason = why;
    if (when_down) when_down();
  }
  void session_answered() override { ++answered; }
  void session_alive(TimePoint sent) override { alive = sent; }
  void session_ending(const Failure&) override { heard.emplace_back("ending"); }
  void session_notified(const std::string& channel, const std::string& payload) override {
    std::string text = channel;
    heard.push_back(text.append(":").append(payload));
  }
  std::function<void()> when_ready;
  std::function<void()> when_down;
  Words heard;
  Failure reason;
  std::optional<TimePoint> alive;
  int answered = 0;
};

class PostgresSession : public testing::Test {
 protected:
  // Makes a query whose answer is written down in `answers`.
  Query query(const std::string& sql) {
    return {.commands = {{.text = sql}}, .done = [this, sql](const Outcome& outcome, const Results& results) {
              outcomes.push_back(outcome);
              switch (outcome.problem) {
                case Problem::none:
                  answers.push_back(sql + " = " + results.at(0).text(0, 0));
                  break;
                case Problem::not_sent:
                  answers.push_back(sql + " not sent");
                  break;
                case Problem::unknown_outcome:
                  answers.push_back(sql + " unknown");
                  break;
                case Problem::refused:
                  answers.push_back(sql + " refused " + outcome.sqlstate);
                  break;
              }
            }};
  }
  Session::RequestId ask(const std::string& sql, std::chrono::nanoseconds within = 1h) {
    return session->request(query(sql), engine.now() + within);
  }
  void start(Upkeep upkeep = Upkeep::kept_up, std::chrono::nanoseconds session_lease = 0s) {
    session.reset();
    session.emplace(engine, dialling, Purpose{.session_lease = session_lease}, upkeep, user);
  }
  void connect() {
    session->want();
    engine.run();
  }

  test::ManualEngine engine;
  FakeServer server;
  Options options;
  Dialling dialling{options, server.connections(), 5s, 4s};
  RecordingUser user;
  Words answers;
  std::vector<Outcome> outcomes;
  std::optional<Session> session{std::in_place, engine, dialling, Purpose{}, Upkeep::kept_up, user};
};

class PostgresReadySession : public PostgresSession {
 protected:
  PostgresReadySession() { connect(); }
};

// --- Connecting ------------------------------------------------------------------------------------------------------

TEST_F(PostgresSession, ConnectsWhenItIsFirstWanted) {
  engine.run();
  EXPECT_EQ(server.dialled, 0);
  EXPECT_EQ(session->epoch(), 0U);
  connect();
  EXPECT_EQ(user.heard, Words{"ready"});
  EXPECT_TRUE(session->ready());
  EXPECT_EQ(session->epoch(), 1U);
  EXPECT_EQ(session->server().version, 150020);
  session->want();
  engine.run();
  EXPECT_EQ(server.dialled, 1);
}

TEST_F(PostgresSession, SendsWhatWaitedForTheConnectionInOrder) {
  server.reply = [](const FakeQuery& query) { return FakeReply::of({{query.sql()}}); };
  (void)ask("a");
  (void)ask("b");
  EXPECT_TRUE(answers.empty());
  engine.run();
  EXPECT_EQ(answers, (Words{"a = a", "b = b"}));
}

TEST_F(PostgresSession, WhatItsUserAsksWhenItIsReadyGoesFirst) {
  user.when_ready = [&] { (void)ask("LISTEN"); };
  (void)ask("a");
  engine.run();
  EXPECT_EQ(answers, (Words{"LISTEN = ", "a = "}));
}

TEST_F(PostgresSession, TriesAgainUntilThereIsAConnection) {
  server.dialling = FakeServer::Dialling::fail;
  connect();
  EXPECT_EQ(user.heard, Words{"no connection"});
  EXPECT_EQ(session->problem().code, errc::unavailable);
  engine.advance(30s);
  EXPECT_GT(server.dialled, 20);
  EXPECT_LT(server.dialled, 100);
  server.dialling = FakeServer::Dialling::accept;
  engine.advance(1s);
  EXPECT_TRUE(session->ready());
}

TEST_F(PostgresSession, WhatWaitsIsToldThatThereIsNoConnection) {
  server.dialling = FakeServer::Dialling::fail;
  (void)ask("a");
  engine.run();
  EXPECT_EQ(answers, Words{"a not sent"});
  EXPECT_EQ(outcomes[0].failure.code, errc::unavailable);
}

TEST_F(PostgresSession, GivesUpADiallingThatTakesTooLong) {
  server.dialling = FakeServer::Dialling::silence;
  (void)ask("a");
  engine.advance(4900ms);
  EXPECT_TRUE(answers.empty());
  engine.advance(200ms);
  EXPECT_EQ(answers, Words{"a not sent"});
}

TEST_F(PostgresSession, ARequestsDeadlineMayComeBeforeTheConnection) {
  server.dialling = FakeServer::Dialling::silence;
  (void)ask("a", 100ms);
  engine.advance(100ms);
  EXPECT_EQ(answers, Words{"a not sent"});
  EXPECT_EQ(outcomes[0].failure.code, errc::unavailable);
  server.dialling = FakeServer::Dialling::accept;
  engine.advance(10s);
  EXPECT_TRUE(session->ready());
  EXPECT_EQ(server.count("a"), 0U);
}

TEST_F(PostgresSession, AfterAFinalRefusalItWaitsUntilItIsWanted) {
  server.dialling = FakeServer::Dialling::refuse_password;
  connect();
  EXPECT_EQ(user.reason.code, errc::access_denied);
  engine.advance(1h);
  EXPECT_EQ(server.dialled, 1);
  server.dialling = FakeServer::Dialling::accept;
  (void)ask("a");
  engine.advance(50ms);
  EXPECT_EQ(answers, Words{"a = "});
}

// --- Breaking --------------------------------------------------------------------------------------------------------

TEST_F(PostgresReadySession, WhatWasUnderWayHasAnUnknownOutcome) {
  server.reply = [](const FakeQuery&) { return FakeReply::held(); };
  (void)ask("a");
  engine.run();
  EXPECT_FALSE(session->idle());
  server.break_connections();
  engine.run();
  EXPECT_EQ(answers, Words{"a unknown"});
  EXPECT_EQ(outcomes[0].failure.code, errc::ambiguous);
  EXPECT_EQ(user.heard, (Words{"ready", "broken"}));
  EXPECT_TRUE(session->idle());
  engine.advance(50ms);
  EXPECT_TRUE(session->ready());
  EXPECT_EQ(session->epoch(), 2U);
}

TEST_F(PostgresReadySession, WhatIsAskedWhileItBreaksWaitsForTheNextConnection) {
  server.reply = [](const FakeQuery& query) { return query.connection == 1 ? FakeReply::lost() : FakeReply{}; };
  Query first = query("a");
  first.done = [&](const Outcome&, const Results&) { (void)ask("b"); };
  (void)session->request(std::move(first), TimePoint::max());
  engine.advance(100ms);
  EXPECT_EQ(answers, Words{"b = "});
  EXPECT_EQ(server.queries.back().connection, 2);
}

TEST_F(PostgresSession, AServerThatThrowsUsOutAgainAndAgainIsNotStormed) {
  user.when_ready = [&] { server.break_connections(); };
  connect();
  engine.advance(30s);
  EXPECT_LT(server.dialled, 100);
}

TEST_F(PostgresReadySession, MayBeDestroyedByWhoeverHearsFromIt) {
  user.when_down = [&] { session.reset(); };
  server.break_connections();
  engine.run();
  EXPECT_FALSE(session);
  EXPECT_EQ(server.open(), 0U);

  start();
  user.when_ready = [&] { session.reset(); };
  connect();
  EXPECT_FALSE(session);

  user.when_ready = nullptr;
  start();
  Query last = query("a");
  last.done = [&](const Outcome&, const Results&) { session.reset(); };
  (void)session->request(std::move(last), TimePoint::max());
  (void)ask("b");
  engine.run();
  EXPECT_FALSE(session);
  EXPECT_TRUE(answers.empty());
}

TEST_F(PostgresSession, MadeOnceItIsOverWhenItBreaks) {
  start(Upkeep::once);
  connect();
  server.break_connections();
  engine.advance(1h);
  EXPECT_EQ(server.dialled, 1);
  EXPECT_TRUE(session->over());
  (void)ask("a");
  EXPECT_TRUE(answers.empty());
  engine.run();
  EXPECT_EQ(answers, Words{"a not sent"});
}

TEST_F(PostgresSession, MadeOnceItIsOverWhenThereIsNoConnection) {
  start(Upkeep::once);
  server.dialling = FakeServer::Dialling::fail;
  (void)ask("a");
  engine.run();
  EXPECT_EQ(answers, Words{"a not sent"});
  EXPECT_TRUE(session->over());
}

TEST_F(PostgresReadySession, NothingIsCalledOnceItIsStopped) {
  server.reply = [](const FakeQuery&) { return FakeReply::held(); };
  (void)ask("a");
  session->stop();
  engine.advance(1h);
  EXPECT_TRUE(answers.empty());
  EXPECT_EQ(server.open(), 0U);
}

// --- Deadlines -------------------------------------------------------------------------------------------------------

TEST_F(PostgresReadySession, AnAnswerThatIsLateIsUnknownAndTheConnectionStays) {
  server.reply = [](const FakeQuery& query) { return query.sql() == "a" ? FakeReply::held() : FakeReply{}; };
  (void)ask("a", 100ms);
  engine.advance(100ms);
  EXPECT_EQ(answers, Words{"a unknown"});
  EXPECT_TRUE(session->ready());
  server.reply = nullptr;
  server.release();
  (void)ask("b");
  engine.run();
  EXPECT_EQ(answers, (Words{"a unknown", "b = "}));
  EXPECT_EQ(server.dialled, 1);
}

TEST_F(PostgresReadySession, AServerThatDoesNotAnswerLosesTheConnection) {
  server.reply = [](const FakeQuery&) { return FakeReply::held(); };
  (void)ask("a");
  engine.advance(3900ms);
  EXPECT_TRUE(session->ready());
  engine.advance(200ms);
  EXPECT_EQ(answers, Words{"a unknown"});
  EXPECT_EQ(user.heard.at(1), "broken");
}

TEST_F(PostgresReadySession, AnAnswerThatArrivedWhileWeSleptCounts) {
  server.reply = [](const FakeQuery&) { return FakeReply::held(); };
  (void)ask("a", 100ms);
  engine.run();
  server.reply = nullptr;
  server.release(false);
  engine.sleep_through(1h);
  EXPECT_EQ(answers, Words{"a = "});
}

TEST_F(PostgresReadySession, AStatementThatBlocksHasUntilItsDeadline) {
  server.reply = [](const FakeQuery& query) { return query.sql() == "wait" ? FakeReply::held() : FakeReply{}; };
  (void)session->request({.query = query("wait"), .deadline = engine.now() + 1min, .blocks = true});
  engine.advance(59s);
  EXPECT_TRUE(session->ready());
  EXPECT_EQ(server.heartbeats, 0);
  engine.advance(2s);
  EXPECT_EQ(answers, Words{"wait unknown"});
  EXPECT_EQ(server.open(), 1U);
  EXPECT_EQ(user.heard, (Words{"ready", "broken", "ready"}));
}

TEST_F(PostgresSession, WithdrawnRequestsAreNotAnswered) {
  const auto waiting = ask("a");
  EXPECT_TRUE(session->withdraw(waiting));
  EXPECT_FALSE(session->withdraw(waiting));
  connect();
  const auto sent = ask("b");
  EXPECT_FALSE(session->withdraw(sent));
  engine.run();
  EXPECT_EQ(server.count("a"), 0U);
  EXPECT_EQ(server.count("b"), 1U);
  EXPECT_TRUE(answers.empty());
}

TEST_F(PostgresReadySession, WhatTheServerRefusesIsAnAnswer) {
  server.reply = [](const FakeQuery&) { return FakeReply::refused("40001"); };
  (void)ask("a");
  engine.run();
  EXPECT_EQ(answers, Words{"a refused 40001"});
  EXPECT_TRUE(session->ready());
}

// --- Connections that are good ---------------------------------------------------------------------------------------

TEST_F(PostgresReadySession, AfterABreakUponARequestOnlyTheAnswerToOneMakesAConnectionGood) {
  (void)ask("a");
  engine.run();
  EXPECT_EQ(user.answered, 1);
  server.reply = [](const FakeQuery&) { return FakeReply::lost(); };
  (void)ask("b");
  engine.advance(10s);
  EXPECT_TRUE(session->ready());
  EXPECT_EQ(user.answered, 1) << "heartbeats are answered";
  server.reply = nullptr;
  (void)ask("c");
  engine.run();
  EXPECT_EQ(user.answered, 2);
}

TEST_F(PostgresReadySession, ARefusalOfAServerThatIsOfNoUseIsNoAnswer) {
  for (const std::string sqlstate : {"25006", "42501"}) {
    server.reply = [&](const FakeQuery&) { return FakeReply::refused(sqlstate); };
    (void)ask("a");
    engine.run();
    EXPECT_EQ(user.answered, sqlstate == "42501" ? 1 : 0);
  }
}

// --- Health ----------------------------------------------------------------------------------------------------------

TEST_F(PostgresReadySession, AsksWhetherSomebodyIsThereWhenNothingWasHeard) {
  engine.advance(1900ms);
  EXPECT_EQ(server.heartbeats, 0);
  (void)ask("a");
  engine.advance(1900ms);
  EXPECT_EQ(server.heartbeats, 0);
  engine.advance(10s);
  EXPECT_GE(server.heartbeats, 4);
  EXPECT_LE(server.heartbeats, 6);
  EXPECT_EQ(user.heard, Words{"ready"});
  EXPECT_TRUE(session->idle());
}

TEST_F(PostgresReadySession, ASilentServerLosesTheConnection) {
  server.replies_to_heartbeats = true;
  server.reply = [](const FakeQuery&) { return FakeReply::held(); };
  engine.advance(3900ms);
  EXPECT_EQ(user.heard, Words{"ready"});
  engine.advance(200ms);
  EXPECT_EQ(user.heard.at(1), "broken");
}

TEST_F(PostgresReadySession, AHeartbeatThatIsRefusedEndsTheSession) {
  server.replies_to_heartbeats = true;
  server.reply = [](const FakeQuery&) { return FakeReply::refused("25P02"); };
  engine.advance(2s);
  ASSERT_GE(user.heard.size(), 3U);
  EXPECT_EQ(user.heard[1], "ending");  // while the server still keeps it
  EXPECT_EQ(user.heard[2], "broken");
  EXPECT_TRUE(user.reason.detail.ends_with("(SQLSTATE 25P02)")) << user.reason.detail;
}

TEST_F(PostgresSession, TellsWhenTheServerWasLastKnownToKeepIt) {
  start(Upkeep::once, 3s);
  connect();
  EXPECT_FALSE(user.alive);
  const TimePoint sent = engine.now();
  server.reply = [](const FakeQuery&) { return FakeReply::held(); };
  (void)ask("a");
  engine.advance(500ms);
  EXPECT_FALSE(user.alive);
  server.reply = nullptr;
  server.release();
  engine.run();
  EXPECT_EQ(user.alive, sent);
  // Three heartbeats in each lease.
  engine.advance(1s);
  EXPECT_EQ(user.alive, sent + 1s);
}

TEST_F(PostgresSession, IsKeptAsLongAsItsLocksAreSafe) {
  start(Upkeep::once, 9s);
  connect();
  engine.advance(2s);
  ASSERT_EQ(server.heartbeats, 1);
  const TimePoint last = engine.now();
  server.replies_to_heartbeats = true;
  server.reply = [](const FakeQuery&) { return FakeReply::held(); };
  engine.advance(lease_valid_until(last, 9s) - engine.now() - 1ms);
  EXPECT_TRUE(session->ready());
  engine.advance(1ms);
  EXPECT_TRUE(session->over());
}

TEST_F(PostgresReadySession, HandsOnNotifications) {
  server.notify("dlock", "orders/42");
  engine.run();
  EXPECT_EQ(user.heard, (Words{"ready", "dlock:orders/42"}));
}

}  // namespace

}  // namespace dlock::postgres

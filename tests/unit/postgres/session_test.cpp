#include "backends/postgres/sessions/session.hpp"

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <functional>
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

class PostgresSession : public testing::Test, private Session::User {
 protected:
  // The answer is written down in `answers`.
  void ask(const std::string& sql, std::chrono::nanoseconds within = 1h, bool blocks = false) {
    Query query{.commands = {{.text = sql}}, .done = [this, sql](const Outcome& outcome, const Results& results) {
                  static constexpr std::array problems{" = ", " not sent: ", " unknown: ", " refused: "};
                  const bool answered = outcome.problem == Problem::none;
                  const std::string said = answered ? results.at(0).text(0, 0) : outcome.failure.code.message();
                  answers.push_back(sql + problems.at(static_cast<std::size_t>(outcome.problem)) + said);
                  if (when_answered) when_answered();
                }};
    (void)session->request({.query = std::move(query), .deadline = engine.now() + within, .blocks = blocks});
  }
  void start(Upkeep upkeep = Upkeep::kept_up, std::chrono::nanoseconds session_lease = 0s) {
    heard.clear();
    session.emplace(engine, dialling, Purpose{.session_lease = session_lease}, upkeep, user);
  }
  void connect() {
    session->want();
    engine.run();
  }
  // But for the connections that are named.
  void hold_answers(int connections = 100) {
    server.reply = [connections](const FakeQuery& query) {
      return query.connection <= connections ? FakeReply::held() : FakeReply{};
    };
  }
  static std::string failed(const std::string& what, errc code) { return what + std::error_code(code).message(); }

  test::ManualEngine engine;
  FakeServer server;
  Options options;
  Dialling dialling{options, server.connections(), 5s, 4s};
  Words heard;
  Words answers;
  std::optional<TimePoint> alive;
  int answered = 0;
  std::function<void()> when_ready;
  std::function<void()> when_down;
  std::function<void()> when_answered;
  Session::User& user = *this;
  std::optional<Session> session{std::in_place, engine, dialling, Purpose{}, Upkeep::kept_up, user};

 private:
  void session_ready() override {
    heard.emplace_back("ready");
    if (when_ready) when_ready();
  }
  void session_down(const Failure& /*why*/, bool was_ready) override {
    heard.emplace_back(was_ready ? "broken" : "no connection");
    if (when_down) when_down();
  }
  void session_answered() override { ++answered; }
  void session_alive(TimePoint sent) override { alive = sent; }
};

// --- Connecting ------------------------------------------------------------------------------------------------------

TEST_F(PostgresSession, ConnectsWhenARequestNeedsItAndSendsWhatWaitedInOrder) {
  engine.run();
  EXPECT_EQ(server.dialled, 0);
  EXPECT_EQ(session->epoch(), 0U);
  server.reply = [](const FakeQuery& query) { return FakeReply::of({{"answer to " + query.sql()}}); };
  when_ready = [&] { ask("LISTEN"); };
  ask("a");
  ask("b");
  EXPECT_TRUE(answers.empty());
  engine.run();
  EXPECT_EQ(answers, (Words{"LISTEN = answer to LISTEN", "a = answer to a", "b = answer to b"}));
  EXPECT_EQ(session->epoch(), 1U);
  EXPECT_EQ(session->server().version, 150020);
  connect();
  EXPECT_EQ(server.dialled, 1);
}

TEST_F(PostgresSession, GivesUpADiallingThatTakesTooLong) {
  server.dialling = FakeServer::Dialling::silence;
  ask("impatient", 100ms);
  ask("a");
  engine.advance(100ms);
  EXPECT_EQ(answers, Words{failed("impatient not sent: ", errc::unavailable)});
  engine.advance(4800ms);
  EXPECT_EQ(answers.size(), 1U);
  engine.advance(200ms);
  EXPECT_EQ(answers.back(), failed("a not sent: ", errc::unavailable));
  server.dialling = FakeServer::Dialling::accept;
  engine.advance(10s);
  EXPECT_TRUE(session->ready());
  EXPECT_TRUE(server.queries.empty());
}

TEST_F(PostgresSession, MadeOnceItIsOverWhenItBreaks) {
  for (const bool connects : {true, false}) {
    start(Upkeep::once);
    server.dialling = connects ? FakeServer::Dialling::accept : FakeServer::Dialling::fail;
    const int dialled = server.dialled;
    connect();
    server.break_connections();
    engine.advance(1h);
    EXPECT_EQ(server.dialled, dialled + 1);
    EXPECT_TRUE(session->over());
    answers.clear();
    ask("a");
    EXPECT_TRUE(answers.empty());
    engine.run();
    EXPECT_EQ(answers, Words{failed("a not sent: ", errc::unavailable)});
  }
}

// --- Breaking --------------------------------------------------------------------------------------------------------

TEST_F(PostgresSession, WhatWasUnderWayWhenItBreaksIsUnknownAndWhatIsAskedThenGoesOverTheNextConnection) {
  hold_answers(1);
  ask("a");
  engine.run();
  EXPECT_FALSE(session->idle());
  when_answered = [&] {
    when_answered = nullptr;
    ask("b");
  };
  server.break_connections();
  engine.advance(100ms);
  EXPECT_EQ(answers, (Words{failed("a unknown: ", errc::ambiguous), "b = "}));
  EXPECT_EQ(heard, (Words{"ready", "broken", "ready"}));
  EXPECT_TRUE(session->idle());
  EXPECT_EQ(session->epoch(), 2U);
}

TEST_F(PostgresSession, MayBeDestroyedByTheUserThatItCalls) {
  for (std::function<void()>* const call : {&when_ready, &when_down, &when_answered}) {
    start();
    *call = [&] { session.reset(); };
    connect();
    if (session) {
      ask("a");
      ask("b");
      server.break_connections();
      engine.run();
    }
    EXPECT_FALSE(session);
    EXPECT_EQ(server.open(), 0U);
    *call = nullptr;
  }
}

TEST_F(PostgresSession, NothingIsCalledOnceItIsStopped) {
  connect();
  hold_answers();
  ask("a");
  session->stop();
  engine.advance(1h);
  EXPECT_TRUE(answers.empty());
  EXPECT_EQ(server.open(), 0U);
}

// --- Deadlines -------------------------------------------------------------------------------------------------------

TEST_F(PostgresSession, AnAnswerThatIsLateIsUnknownAndTheConnectionStays) {
  hold_answers();
  ask("a", 100ms);
  engine.advance(100ms);
  EXPECT_EQ(answers, Words{failed("a unknown: ", errc::ambiguous)});
  server.reply = nullptr;
  server.release();
  ask("b");
  engine.run();
  EXPECT_EQ(answers.back(), "b = ");
  EXPECT_EQ(server.dialled, 1);
}

TEST_F(PostgresSession, AnAnswerThatArrivedWhileTheProcessSleptCounts) {
  hold_answers();
  ask("a", 100ms);
  engine.run();
  server.reply = nullptr;
  server.release(false);
  engine.sleep_through(1h);
  EXPECT_EQ(answers, Words{"a = "});
}

TEST_F(PostgresSession, AServerThatDoesNotAnswerLosesTheConnection) {
  hold_answers(1);
  ask("a");
  engine.advance(3900ms);
  EXPECT_TRUE(session->ready());
  engine.advance(200ms);
  EXPECT_EQ(answers, Words{failed("a unknown: ", errc::ambiguous)});
  EXPECT_EQ(heard.at(1), "broken");
}

TEST_F(PostgresSession, AStatementThatBlocksHasUntilItsDeadline) {
  hold_answers(1);
  ask("wait", 1min, true);
  engine.advance(59s);
  EXPECT_EQ(heard, Words{"ready"});
  EXPECT_EQ(server.heartbeats, 0);
  engine.advance(2s);
  EXPECT_EQ(answers, Words{failed("wait unknown: ", errc::ambiguous)});
  EXPECT_EQ(heard, (Words{"ready", "broken", "ready"}));
}

// --- Connections that are good ---------------------------------------------------------------------------------------

TEST_F(PostgresSession, AfterABreakUponARequestOnlyTheAnswerToOneMakesAConnectionGood) {
  ask("a");
  engine.run();
  EXPECT_EQ(answered, 1);
  server.reply = [](const FakeQuery&) { return FakeReply::lost(); };
  ask("b");
  engine.advance(10s);
  EXPECT_TRUE(session->ready());
  EXPECT_EQ(answered, 1) << "heartbeats are answered";
  server.reply = nullptr;
  ask("c");
  engine.run();
  EXPECT_EQ(answered, 2);
}

TEST_F(PostgresSession, ARefusalOfAServerThatIsOfNoUseIsNoAnswer) {
  for (const std::string sqlstate : {"25006", "42501"}) {
    server.reply = [&](const FakeQuery&) { return FakeReply::refused(sqlstate); };
    ask("a");
    engine.run();
    EXPECT_EQ(answered, sqlstate == "42501" ? 1 : 0);
  }
}

// --- Health ----------------------------------------------------------------------------------------------------------

TEST_F(PostgresSession, AsksWhetherTheServerIsThereWhenItIsSilentForTwoSeconds) {
  connect();
  for (int i = 0; i < 3; ++i) {
    engine.advance(1900ms);
    EXPECT_EQ(server.heartbeats, 0);
    ask("a");
  }
  engine.advance(10s);
  EXPECT_GE(server.heartbeats, 4);
  EXPECT_LE(server.heartbeats, 6);
  EXPECT_TRUE(session->idle());
}

TEST_F(PostgresSession, ASilentServerLosesTheConnection) {
  server.replies_to_heartbeats = true;
  hold_answers(1);
  connect();
  engine.advance(3900ms);
  EXPECT_EQ(heard, Words{"ready"});
  engine.advance(200ms);
  EXPECT_EQ(heard.at(1), "broken");
}

TEST_F(PostgresSession, TellsWhenTheServerWasLastKnownToKeepItAndLetsItGoWhenItsLocksAreNotSafe) {
  start(Upkeep::once, 3s);
  connect();
  EXPECT_FALSE(alive);
  const TimePoint sent = engine.now();
  hold_answers();
  ask("a");
  engine.advance(500ms);
  EXPECT_FALSE(alive);
  server.reply = nullptr;
  server.release();
  engine.run();
  EXPECT_EQ(alive, sent);
  engine.advance(1s);  // three heartbeats in each lease
  EXPECT_EQ(alive, sent + 1s);
  server.replies_to_heartbeats = true;
  hold_answers();
  engine.advance(lease_valid_until(*alive, 3s) - engine.now() - 1ms);
  EXPECT_TRUE(session->ready());
  engine.advance(1ms);
  EXPECT_TRUE(session->over());
}

}  // namespace

}  // namespace dlock::postgres

#include "backends/postgres/administration/inspection.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tests/simulation/postgres/fake_connection.hpp"
#include "tests/support/manual_engine.hpp"

namespace dlock::postgres {

namespace {

using namespace std::chrono_literals;

struct Unimpressed final : common::ConnectionObserver {
  void connected() override {}
  void broken(const Failure& /*why*/) override {}
};

class PostgresInspection : public testing::Test {
 protected:
  PostgresInspection() { start(); }
  void start(Strategy strategy = Strategy::table, const std::string& key = "sha256") {
    inspection.reset();
    commands.reset();
    options.strategy = strategy;
    options.key = parse_key_scheme(key).value();
    options.response_timeout = 5s;
    commands.emplace(engine, options, dialling, schema, observer);
    inspection.emplace(*commands);
  }
  template <class T>
  using Answer = std::optional<Result<T>>;
  template <class T>
  Answer<T> answer_to(const std::function<void(Backend::Handler<T>)>& question) {
    Answer<T> answer;
    question([&](Result<T> result) {
      EXPECT_FALSE(answer) << "answered twice";
      answer = std::move(result);
    });
    engine.advance(1min);
    EXPECT_TRUE(answer) << "not answered";
    return answer;
  }
  Answer<LockInfo> inspect(const std::string& name = "lock") {
    return answer_to<LockInfo>([&](auto done) { inspection->inspect(LockKind::lock, name, std::move(done)); });
  }
  Answer<std::vector<LockInfo>> list() {
    return answer_to<std::vector<LockInfo>>([&](auto done) { inspection->list(LockKind::lock, std::move(done)); });
  }
  Answer<bool> break_lock(const std::string& name = "lock") {
    return answer_to<bool>([&](auto done) { inspection->break_lock(LockKind::lock, name, std::move(done)); });
  }
  using Names = std::vector<std::string>;
  Answer<Names> forget(const std::string& name = "lock") {
    return answer_to<Names>([&](auto done) { inspection->forget({.name = name, .idle = 1min}, std::move(done)); });
  }
  // Everything is answered with that.
  void reply_with(const FakeReply& reply) {
    server.reply = [reply](const FakeQuery&) { return reply; };
  }

  test::ManualEngine engine;
  FakeServer server;
  Options options;
  Dialling dialling{options, server.connections(), 5s, 5s};
  Schema schema{engine, options, dialling};
  Unimpressed observer;
  std::optional<Commands> commands;
  std::optional<Inspection> inspection;
};

constexpr Strategy strategies[] = {Strategy::table, Strategy::optimistic, Strategy::for_update, Strategy::advisory};

// --- Looking ---------------------------------------------------------------------------------------------------------

TEST_F(PostgresInspection, TellsWhatTheServerSays) {
  for (const Strategy strategy : strategies) {
    start(strategy);
    reply_with(FakeReply::of({{"lock", "t", "host:7:x", "42", "1500", "3"}}));
    const LockInfo info = inspect()->value();
    EXPECT_EQ(info.name, "lock");
    EXPECT_TRUE(info.held);
    EXPECT_EQ(info.holder, "host:7:x");
    EXPECT_EQ(info.token.value(), 42U);
    EXPECT_EQ(info.remaining, 1500ms);
    EXPECT_EQ(info.waiters, 3U);
  }
}

TEST_F(PostgresInspection, TellsWhatTheServerDoesNotKnow) {
  reply_with(FakeReply::of({{"lock", "f", "", "41", std::nullopt, std::nullopt}}));
  const LockInfo info = inspect()->value();
  EXPECT_FALSE(info.held);
  EXPECT_FALSE(info.remaining);
  EXPECT_FALSE(info.waiters);
  EXPECT_EQ(info.token.value(), 41U);
}

TEST_F(PostgresInspection, ANameWithoutARowIsFree) {
  const LockInfo info = inspect("other")->value();
  EXPECT_EQ(info.name, "other");
  EXPECT_FALSE(info.held);
}

TEST_F(PostgresInspection, AQuestionNeverMakesTheSchema) {
  for (const Strategy strategy : strategies) {
    for (const char* sqlstate : {"42P01", "3F000"}) {
      start(strategy);
      reply_with(FakeReply::refused(sqlstate));
      EXPECT_FALSE(inspect()->value().held);
      EXPECT_TRUE(list()->value().empty());
      EXPECT_FALSE(break_lock()->value());
      for (const FakeQuery& query : server.queries) EXPECT_NE(query.purpose.word, "setup");
    }
  }
}

TEST_F(PostgresInspection, AnAdvisoryLockIsSeenWithoutTables) {
  start(Strategy::advisory);
  server.reply = [](const FakeQuery& query) {
    if (query.sql().find("fence") != std::string::npos) return FakeReply::refused("42P01");
    return FakeReply::of({{"lock", "t", "other", "0", std::nullopt, "2"}});
  };
  const LockInfo info = inspect()->value();
  EXPECT_TRUE(info.held);
  EXPECT_EQ(info.holder, "other");
  EXPECT_EQ(info.waiters, 2U);
}

TEST_F(PostgresInspection, AMissingRightIsNamed) {
  reply_with(FakeReply::refused("42501"));
  auto answer = inspect();
  ASSERT_FALSE(answer->ok());
  EXPECT_EQ(answer->failure().code, errc::access_denied);
  const auto advice = answer->failure().detail.find("GRANT USAGE ON SCHEMA");
  EXPECT_NE(advice, std::string::npos);
  EXPECT_EQ(answer->failure().detail.find("GRANT USAGE ON SCHEMA", advice + 1), std::string::npos) << "told twice";
}

TEST_F(PostgresInspection, AQuestionWithoutAnswerIsNeverAmbiguous) {
  reply_with(FakeReply::lost());
  EXPECT_EQ(inspect()->failure().code, errc::unavailable);
  EXPECT_EQ(list()->failure().code, errc::unavailable);
  reply_with(FakeReply::held());
  EXPECT_EQ(inspect()->failure().code, errc::unavailable);
  server.dialling = FakeServer::Dialling::fail;
  EXPECT_EQ(list()->failure().code, errc::unavailable);
}

TEST_F(PostgresInspection, AnswersWithinTheResponseTimeout) {
  reply_with(FakeReply::held());
  bool answered = false;
  inspection->inspect(LockKind::lock, "lock", [&](const Result<LockInfo>&) { answered = true; });
  engine.advance(4999ms);
  EXPECT_FALSE(answered);
  engine.advance(1ms);
  EXPECT_TRUE(answered);
}

// The row of its token is called otherwise.
TEST_F(PostgresInspection, AnswersWithTheNameThatWasAskedFor) {
  start(Strategy::advisory, "int64:-5");
  reply_with(FakeReply::of({{"lock\tint64:-5", "t", "me", "42", std::nullopt, "0"}}));
  const LockInfo info = inspect()->value();
  EXPECT_EQ(info.name, "lock");
  EXPECT_TRUE(info.held);
}

TEST_F(PostgresInspection, AsksAboutAdvisoryLocksByTheirKey) {
  start(Strategy::advisory, "int64:-5");
  (void)inspect();
  EXPECT_EQ(server.queries.back().commands[0].params, (std::vector<Parameter>{"-5", "lock\tint64:-5"}));
  (void)break_lock();
  EXPECT_EQ(server.queries.back().commands[0].params, (std::vector<Parameter>{"-5", "{}"}));
  start(Strategy::advisory, "hashtextextended");
  (void)inspect();
  EXPECT_EQ(server.queries.back().commands[0].params, (std::vector<Parameter>{"lock", "lock\thashtextextended"}));
  EXPECT_NE(server.queries.back().sql().find("hashtextextended"), std::string::npos);
  // This scheme has keys in two spaces.
  start(Strategy::advisory, "medallion");
  (void)inspect("0000000100000002");
  const std::string of_number = server.queries.back().sql();
  (void)inspect("00000001,00000002");
  EXPECT_NE(server.queries.back().sql(), of_number);
}

// --- Listing ---------------------------------------------------------------------------------------------------------

TEST_F(PostgresInspection, ListsEveryRow) {
  reply_with(
      FakeReply::of({{"a", "t", "x", "1", "10", std::nullopt}, {"b", "f", "", "2", std::nullopt, std::nullopt}}));
  const auto infos = list()->value();
  ASSERT_EQ(infos.size(), 2U);
  EXPECT_EQ(infos[0].name, "a");
  EXPECT_EQ(infos[1].token.value(), 2U);
}

TEST_F(PostgresInspection, TooManyAreNotListedInPart) {
  server.reply = [](const FakeQuery& query) {
    return FakeReply::of(std::vector<Rows::Row>(std::stoul(query.param(0)), {"a", "f", "", "1", {}, {}}));
  };
  EXPECT_EQ(list()->failure().code, errc::unavailable);
}

// --- Breaking --------------------------------------------------------------------------------------------------------

TEST_F(PostgresInspection, TellsWhetherALockWasBroken) {
  for (const Strategy strategy : strategies) {
    start(strategy);
    bool held = true;
    server.reply = [&](const FakeQuery&) {
      return std::exchange(held, false) ? FakeReply::of({{"t", std::nullopt, "7"}}) : FakeReply::of({});
    };
    EXPECT_TRUE(break_lock()->value());
    EXPECT_FALSE(break_lock()->value());
  }
}

TEST_F(PostgresInspection, TellsWaitersThatARowWasFreed) {
  (void)break_lock();
  EXPECT_EQ(server.queries.back().commands[0].params, (std::vector<Parameter>{"lock", "dlock:dlock"}));
}

TEST_F(PostgresInspection, ARowThatSomebodyIsChangingIsAskedForAgain) {
  int changing = 3;
  server.reply = [&](const FakeQuery&) { return FakeReply::of({{changing-- > 0 ? "f" : "t"}}); };
  EXPECT_TRUE(break_lock()->value());
  EXPECT_EQ(server.queries.size(), 4U);
}

TEST_F(PostgresInspection, ARowThatSomebodyKeepsLockedIsNotWaitedForForEver) {
  reply_with(FakeReply::of({{"f"}}));
  auto answer = break_lock();
  ASSERT_FALSE(answer->ok());
  EXPECT_EQ(answer->failure().code, errc::unavailable);
  EXPECT_LT(server.queries.size(), 100U);
}

TEST_F(PostgresInspection, ASessionThatWasGoneAlreadyHasNotBeenBroken) {
  start(Strategy::advisory);
  reply_with(FakeReply::of({{"f", std::nullopt, "7"}}));
  EXPECT_FALSE(break_lock()->value());
  EXPECT_EQ(server.queries.size(), 1U);
}

// A session that is told to end says so to its client before it lets go of its locks.
TEST_F(PostgresInspection, ASessionThatWasToldToEndIsAskedForUntilItIsGone) {
  for (const Strategy strategy : {Strategy::for_update, Strategy::advisory}) {
    start(strategy);
    server.queries.clear();
    int ending = 3;
    server.reply = [&](const FakeQuery& query) {
      EXPECT_EQ(query.param(1), ending == 3 ? "{}" : "{7,8}");
      if (ending-- == 0) return FakeReply::of({});
      return FakeReply::of({{"t", std::nullopt, "7"}, {ending == 2 ? "t" : "f", std::nullopt, "8"}});
    };
    EXPECT_TRUE(break_lock()->value());
    EXPECT_EQ(server.queries.size(), 4U);
  }
}

TEST_F(PostgresInspection, ASessionThatDoesNotEndIsNotWaitedForForEver) {
  start(Strategy::advisory);
  reply_with(FakeReply::of({{"t", std::nullopt, "7"}}));
  auto answer = break_lock();
  ASSERT_FALSE(answer->ok());
  EXPECT_EQ(answer->failure().code, errc::unavailable);
  EXPECT_NE(answer->failure().detail.find("session to end"), std::string::npos) << answer->failure().detail;
  EXPECT_LT(server.queries.size(), 100U);
}

TEST_F(PostgresInspection, TheRightToEndASessionIsNamed) {
  for (const Strategy strategy : {Strategy::for_update, Strategy::advisory}) {
    start(strategy);
    reply_with(FakeReply::refused("42501"));
    auto answer = break_lock();
    ASSERT_FALSE(answer->ok());
    EXPECT_EQ(answer->failure().code, errc::access_denied);
    EXPECT_NE(answer->failure().detail.find("GRANT pg_signal_backend"), std::string::npos) << answer->failure().detail;
    EXPECT_EQ(answer->failure().detail.find("SCHEMA") == std::string::npos, strategy == Strategy::advisory)
        << answer->failure().detail;
  }
}

TEST_F(PostgresInspection, ABreakWithoutAnAnswerIsAmbiguous) {
  reply_with(FakeReply::lost());
  EXPECT_EQ(break_lock()->failure().code, errc::ambiguous);
}

TEST_F(PostgresInspection, NobodyIsCalledAfterItsDestruction) {
  reply_with(FakeReply::of({{"f"}}));
  inspection->break_lock(LockKind::lock, "lock", [](const Result<bool>&) { FAIL(); });
  engine.run();
  EXPECT_EQ(server.queries.size(), 1U);
  inspection.reset();
  commands.reset();
  EXPECT_EQ(engine.pending_timers(), 0U);
  engine.advance(1min);
}

// --- Forgetting ------------------------------------------------------------------------------------------------------

TEST_F(PostgresInspection, TellsWhatWasForgotten) {
  for (const Strategy strategy : strategies) {
    start(strategy);
    reply_with(FakeReply::of({{"a"}, {"b"}}));
    EXPECT_EQ(forget("")->value(), (Names{"a", "b"}));
    reply_with(FakeReply::of({}));
    EXPECT_TRUE(forget()->value().empty());
    reply_with(FakeReply::refused("42P01"));
    EXPECT_TRUE(forget()->value().empty());
    reply_with(FakeReply::lost());
    EXPECT_EQ(forget()->failure().code, errc::ambiguous);
  }
}

TEST_F(PostgresInspection, ForgetsAdvisoryLocksByTheirRows) {
  start(Strategy::advisory, "int64:-5");
  (void)forget();
  EXPECT_EQ(server.queries.back().param(0), "lock\tint64:-5");
  EXPECT_EQ(server.queries.back().param(1), "60000000");
  (void)forget("");
  EXPECT_EQ(server.queries.back().param(0), "");
}

TEST_F(PostgresInspection, TheRightToForgetIsNamed) {
  for (const Strategy strategy : strategies) {
    start(strategy);
    reply_with(FakeReply::refused("42501"));
    auto answer = forget();
    ASSERT_FALSE(answer->ok());
    EXPECT_EQ(answer->failure().code, errc::access_denied);
    EXPECT_NE(answer->failure().detail.find("GRANT DELETE ON ALL TABLES IN SCHEMA \"dlock\""), std::string::npos)
        << answer->failure().detail;
  }
}

}  // namespace

}  // namespace dlock::postgres

// Questions about locks, and breaking them, through the backend. What the SQL says is for tests on real servers.
#include "backends/postgres/administration/inspection.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "backends/postgres/postgres_backend.hpp"
#include "tests/simulation/postgres/fake_connection.hpp"
#include "tests/support/manual_engine.hpp"
#include "tests/support/recording_host.hpp"

namespace dlock::postgres {

namespace {

using namespace std::chrono_literals;

constexpr Strategy table = Strategy::table;
constexpr Strategy advisory = Strategy::advisory;
constexpr Strategy for_update = Strategy::for_update;
constexpr Strategy all[] = {table, Strategy::optimistic, for_update, advisory};

class PostgresInspection : public testing::Test {
 protected:
  PostgresInspection() { start(table); }
  void start(Strategy strategy, const std::string& key = "sha256") {
    Options options;
    options.strategy = strategy;
    options.key = parse_key_scheme(key).value();
    options.connect_timeout = options.response_timeout = 5s;
    backend.reset();
    backend.emplace(host, options, server.connections());
    server.queries.clear();
  }

  static std::string in_words(const LockInfo& info) {
    std::string words = info.name + (info.held ? " held by " + info.holder : " free");
    words += " token " + std::to_string(info.token.value());
    if (info.remaining) words += " for " + std::to_string(info.remaining->count() / 1'000'000) + " ms";
    if (info.waiters) words += " waiters " + std::to_string(*info.waiters);
    return words;
  }
  static std::string in_words(const std::vector<LockInfo>& infos) {
    std::string words;
    for (const LockInfo& info : infos) words += (words.empty() ? "" : "; ") + in_words(info);
    return words;
  }
  static std::string in_words(bool broken) { return broken ? "broken" : "not held"; }
  static std::string in_words(const std::vector<std::string>& names) {
    std::string words = "forgotten:";
    for (const std::string& name : names) words += " " + name;
    return words;
  }
  static std::string in_words(const Failure& why) {
    return (why.code == errc::unavailable     ? "unavailable: "
            : why.code == errc::ambiguous     ? "unknown: "
            : why.code == errc::access_denied ? "denied: "
                                              : why.code.message() + ": ") +
           why.detail;
  }
  template <class T>
  Backend::Handler<T> into(std::string& words) {
    return [&words](const Result<T>& result) {
      EXPECT_EQ(words, "") << "answered twice";
      words = result.ok() ? in_words(result.value()) : in_words(result.failure());
    };
  }
  // What is answered to inspect, list, break or forget.
  std::string said(const std::string& question, const std::string& name = "lock") {
    std::string words;
    if (question == "inspect") backend->inspect(LockKind::lock, name, into<LockInfo>(words));
    if (question == "list") backend->list(LockKind::lock, into<std::vector<LockInfo>>(words));
    if (question == "break") backend->break_lock(LockKind::lock, name, into<bool>(words));
    if (question == "forget") {
      backend->forget({.name = name, .idle = 1min}, into<std::vector<std::string>>(words));
    }
    EXPECT_EQ(words, "") << "answered inside the call";
    engine.advance(5s);
    return words;
  }
  // Everything is answered with that.
  void reply_with(const FakeReply& reply) {
    server.reply = [reply](const FakeQuery&) { return reply; };
  }
  [[nodiscard]] std::vector<Parameter> params() const { return server.queries.back().commands[0].params; }

  test::ManualEngine engine;
  FakeServer server;
  test::RecordingHost host{engine};
  std::optional<PostgresBackend> backend;
};

TEST_F(PostgresInspection, TellsWhatTheServerSays) {
  const std::vector<Strategy> every(std::begin(all), std::end(all));
  const std::vector<Strategy> of_sessions = {for_update, advisory};
  constexpr auto null = std::nullopt;
  const struct {
    std::vector<Strategy> strategies;
    std::string question;
    FakeReply reply;
    std::string words;  // with which the answer begins
  } cases[] = {
      {every, "inspect", FakeReply::of({{"lock", "t", "host:7:x", "42", "1500", "3"}}),
       "lock held by host:7:x token 42 for 1500 ms waiters 3"},
      {every, "inspect", FakeReply::of({{"lock", "f", "", "41", null, null}}), "lock free token 41"},
      {every, "inspect", FakeReply::of({}), "lock free token 0"},
      {every, "list", FakeReply::of({{"a", "t", "x", "1", "10", null}, {"b", "f", "", "2", null, null}}),
       "a held by x token 1 for 10 ms; b free token 2"},
      {every, "break", FakeReply::of({}), "not held"},
      {every, "forget", FakeReply::of({{"a"}, {"b"}}), "forgotten: a b"},
      {every, "forget", FakeReply::of({}), "forgotten:"},

      // A question about locks is never ambiguous.
      {every, "inspect", FakeReply::lost(), "unavailable: "},
      {every, "inspect", FakeReply::held(), "unavailable: "},
      {every, "list", FakeReply::lost(), "unavailable: "},
      {every, "break", FakeReply::lost(), "unknown: "},
      {every, "forget", FakeReply::lost(), "unknown: "},

      {{table}, "break", FakeReply::of({{"t"}}), "broken"},
      {{table}, "break", FakeReply::of({{"f"}}), "unavailable: another transaction keeps the row of this lock locked"},
      {of_sessions, "break", FakeReply::of({{"f", null, "7"}}), "not held"},  // its session was gone already
      {of_sessions, "break", FakeReply::of({{"t", null, "7"}}),
       "unavailable: dlock told the holder's session to end, but it still holds the lock"},
      {of_sessions, "break", FakeReply::of({{null, "'x'", null}}),
       in_words(Failure{errc::unsupported,
                        "this lock is held by a prepared transaction, which belongs to no session; "
                        "run in its database: ROLLBACK PREPARED 'x'"})},
  };
  for (const auto& each : cases) {
    for (const Strategy strategy : each.strategies) {
      start(strategy);
      reply_with(each.reply);
      const std::string words = said(each.question);
      EXPECT_TRUE(words.starts_with(each.words)) << to_string(strategy) << " " << each.question << ": " << words;
      EXPECT_LT(server.queries.size(), 100U);
    }
  }
}

TEST_F(PostgresInspection, AQuestionNeverMakesTheSchema) {
  for (const Strategy strategy : all) {
    for (const char* const sqlstate : {"42P01", "3F000"}) {
      start(strategy);
      reply_with(FakeReply::refused(sqlstate));
      EXPECT_EQ(said("inspect"), "lock free token 0");
      EXPECT_EQ(said("list"), "");
      EXPECT_EQ(said("break"), "not held");
      EXPECT_EQ(said("forget"), "forgotten:");
      for (const FakeQuery& query : server.queries) EXPECT_NE(query.purpose.word, "setup");
    }
  }
}

TEST_F(PostgresInspection, AnAdvisoryLockIsSeenWithoutTables) {
  start(advisory);
  server.reply = [](const FakeQuery& query) {
    if (query.sql().find("fence") != std::string::npos) return FakeReply::refused("42P01");
    return FakeReply::of({{"lock", "t", "other", "0", std::nullopt, "2"}});
  };
  EXPECT_EQ(said("inspect"), "lock held by other token 0 waiters 2");
}

TEST_F(PostgresInspection, AMissingRightIsNamedOnce) {
  const auto count = [](const std::string& words, const std::string& what) {
    std::size_t found = 0;
    for (auto at = words.find(what); at != words.npos; at = words.find(what, at + 1)) ++found;
    return found;
  };
  for (const Strategy strategy : all) {
    start(strategy);
    reply_with(FakeReply::refused("42501"));
    for (const char* const question : {"inspect", "list", "break", "forget"}) {
      const std::string words = said(question);
      const bool ends_session = question == std::string("break") && strategy != table && strategy != all[1];
      EXPECT_TRUE(words.starts_with("denied: ")) << words;
      EXPECT_EQ(count(words, "GRANT pg_signal_backend"), ends_session ? 1U : 0U) << words;
      EXPECT_EQ(count(words, "GRANT DELETE ON ALL TABLES IN SCHEMA \"dlock\""), question == std::string("forget"));
      // To ask about a session that has an advisory lock takes no right to a table.
      EXPECT_EQ(count(words, "GRANT USAGE ON SCHEMA"), ends_session && strategy == advisory ? 0U : 1U) << words;
    }
  }
}

// The row of its token is called otherwise.
TEST_F(PostgresInspection, AdvisoryLocksGoByTheirKeys) {
  using Params = std::vector<Parameter>;
  start(advisory, "int64:-5");
  reply_with(FakeReply::of({{"lock\tint64:-5", "t", "me", "42", std::nullopt, "0"}}));
  EXPECT_EQ(said("inspect"), "lock held by me token 42 waiters 0");
  EXPECT_EQ(params(), (Params{"-5", "lock\tint64:-5"}));
  reply_with(FakeReply::of({}));
  (void)said("break");
  EXPECT_EQ(params(), (Params{"-5", "{}"}));
  (void)said("forget");
  EXPECT_EQ(params(), (Params{"lock\tint64:-5", "60000000", "100"}));
  (void)said("forget", "");
  EXPECT_EQ(params(), (Params{"", "60000000", "100"}));
  start(advisory, "hashtextextended");
  (void)said("inspect");
  EXPECT_EQ(params(), (Params{"lock", "lock\thashtextextended"}));
  start(advisory, "medallion");  // has keys in two spaces
  (void)said("inspect", "0000000100000002");
  EXPECT_EQ(params(), (Params{"4294967298", "0000000100000002\tint64:4294967298"}));
  (void)said("inspect", "00000001,00000002");
  EXPECT_EQ(params(), (Params{"4294967298", "00000001,00000002\tpair:1,2"}));
}

TEST_F(PostgresInspection, TooManyAreNotListedInPart) {
  server.reply = [](const FakeQuery& query) {
    return FakeReply::of(std::vector<Rows::Row>(std::stoul(query.param(0)), {"a", "f", "", "1", {}, {}}));
  };
  EXPECT_EQ(said("list"), "unavailable: more than 100000 locks; too many to list");
}

// Somebody is changing it.
TEST_F(PostgresInspection, ARowIsBrokenInTheEndAndItsWaitersAreTold) {
  int changing = 3;
  server.reply = [&](const FakeQuery&) { return FakeReply::of({{changing-- > 0 ? "f" : "t"}}); };
  EXPECT_EQ(said("break"), "broken");
  EXPECT_EQ(server.queries.size(), 4U);
  EXPECT_EQ(params(), (std::vector<Parameter>{"lock", "dlock:dlock"}));
  server.reply = [&](const FakeQuery& query) {
    return query.param(1).empty() ? FakeReply::of({{"t"}}) : FakeReply::refused("54000", 1);
  };
  EXPECT_EQ(said("break"), "broken") << "without telling, where notifications find no room";
}

// A session that is told to end says so to its client before it lets go of its locks.
TEST_F(PostgresInspection, ASessionThatWasToldToEndIsAskedForUntilItIsGone) {
  for (const Strategy strategy : {for_update, advisory}) {
    start(strategy);
    int ending = 3;
    server.reply = [&](const FakeQuery& query) {
      EXPECT_EQ(query.param(1), ending == 3 ? "{}" : "{7,8}");
      if (ending-- == 0) return FakeReply::of({});
      return FakeReply::of({{"t", std::nullopt, "7"}, {ending == 2 ? "t" : "f", std::nullopt, "8"}});
    };
    EXPECT_EQ(said("break"), "broken");
    EXPECT_EQ(server.queries.size(), 4U);
  }
}

TEST_F(PostgresInspection, NobodyIsCalledAfterItsDestruction) {
  reply_with(FakeReply::of({{"f"}}));
  backend->break_lock(LockKind::lock, "lock", [](const Result<bool>&) { FAIL(); });
  engine.run();
  EXPECT_EQ(server.queries.size(), 1U);
  backend.reset();
  EXPECT_EQ(engine.pending_timers(), 0U);
  engine.advance(1min);
}

}  // namespace

}  // namespace dlock::postgres

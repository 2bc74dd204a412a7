// Questions about locks, breaking them, and the doctor, through the backend. What the SQL says is for tests on real
// servers; queries whose answers are lost are swept.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "backends/postgres/postgres_backend.hpp"
#include "backends/postgres/sql/statements.hpp"
#include "tests/simulation/postgres/fake_connection.hpp"
#include "tests/support/manual_engine.hpp"
#include "tests/support/recording_host.hpp"

namespace dlock::postgres {

namespace {

using namespace std::chrono_literals;

constexpr Strategy of_rows[] = {Strategy::table, Strategy::optimistic};
constexpr Strategy of_sessions[] = {Strategy::for_update, Strategy::advisory};

class PostgresAdministration : public testing::Test {
 protected:
  PostgresAdministration() { start(Strategy::table); }
  void start(Strategy strategy, const std::string& key = "sha256") {
    Options options;
    options.strategy = strategy;
    options.key = parse_key_scheme(key).value();
    options.connect_timeout = options.response_timeout = 5s;
    backend.reset();
    backend = make_backend(host, options, server.connections());
    server.queries.clear();
  }

  static std::string in_words(const LockInfo& info) {
    std::string words = info.name + (info.held ? " held by " + info.holder : " free");
    words += " token " + std::to_string(info.token.value());
    if (info.remaining) words += " for " + std::to_string(info.remaining->count() / 1'000'000) + " ms";
    if (info.waiters) words += " waiters " + std::to_string(*info.waiters);
    return words + "; ";
  }
  static std::string in_words(const std::vector<LockInfo>& infos) {
    std::string words;
    for (const LockInfo& info : infos) words += in_words(info);
    return words;
  }
  static std::string in_words(bool broken) { return broken ? "broken" : "not held"; }
  static std::string in_words(const std::vector<std::string>& names) {
    std::string words = "forgotten:";
    for (const std::string& name : names) words += " " + name;
    return words;
  }
  // As in "error server: connection refused".
  static std::string in_words(const std::vector<Finding>& findings) {
    constexpr const char* severities[] = {"ok", "note", "warning", "error"};
    std::string words = "\n";
    for (const auto& [severity, check, message] : findings) {
      words += severities[static_cast<std::size_t>(severity)] + (" " + check + ": ") + message + '\n';
    }
    return words;
  }
  template <class T>
  Backend::Handler<T> into(std::string& words) {
    return [&words](const Result<T>& result) {
      EXPECT_EQ(words, "") << "answered twice";
      words = result.ok() ? in_words(result.value()) : result.failure().code.message() + ": " + result.failure().detail;
    };
  }
  // The answer to inspect, list, break, forget or diagnose.
  std::string said(const std::string& question, const std::string& name = "lock") {
    std::string words;
    if (question == "inspect") backend->inspect(LockKind::lock, name, into<LockInfo>(words));
    if (question == "list") backend->list(LockKind::lock, into<std::vector<LockInfo>>(words));
    if (question == "break") backend->break_lock(LockKind::lock, name, into<bool>(words));
    if (question == "forget") backend->forget({.name = name, .idle = 1min}, into<std::vector<std::string>>(words));
    if (question == "diagnose") backend->diagnose(into<std::vector<Finding>>(words));
    EXPECT_EQ(words, "") << "answered inside the call";
    engine.advance(5s);
    return words;
  }
  // Each query is answered with that, for its last command.
  void reply_with(const FakeReply& reply) {
    server.reply = [reply](const FakeQuery& query) {
      FakeReply all = reply;
      while (all.results.size() < query.commands.size()) all.results.insert(all.results.begin(), Rows());
      return all;
    };
  }
  [[nodiscard]] std::vector<Parameter> params() const { return server.queries.back().commands.back().params; }
  static std::string failed(errc code, const std::string& words) {
    return std::error_code(code).message() + ": " + words;
  }

  test::ManualEngine engine;
  FakeServer server{fake_traits()};
  test::RecordingHost host{engine};
  std::unique_ptr<Backend> backend;
};

TEST_F(PostgresAdministration, Inspection_ReportsTheServersRows) {
  constexpr auto null = std::nullopt;
  const struct {
    bool in_session;
    std::string question;
    FakeReply reply;
    std::string words;
  } rows[] = {
      {false, "inspect", FakeReply::of({{"lock", "t", "host:7:x", "42", "1500", "3"}}),
       "lock held by host:7:x token 42 for 1500 ms waiters 3; "},
      {true, "inspect", FakeReply::of({}), "lock free token 0; "},
      {true, "list", FakeReply::of({{"a", "t", "x", "1", "10", null}, {"b", "f", "", "2", null, null}}),
       "a held by x token 1 for 10 ms; b free token 2; "},
      {false, "break", FakeReply::of({}), "not held"},
      {false, "break", FakeReply::of({{"f"}}),
       failed(errc::unavailable, "another transaction keeps the row of this lock locked")},
      {true, "break", FakeReply::of({}), "not held"},
      {true, "break", FakeReply::of({{"f", null, "7"}}), "not held"},  // its session was gone already
      {true, "break", FakeReply::of({{"t", null, "7"}}),
       failed(errc::unavailable, "dlock told the holder's session to end, but it still holds the lock")},
      {true, "forget", FakeReply::of({{"a"}, {"b"}}), "forgotten: a b"},
      {false, "list", FakeReply::of({}), ""},
      {false, "forget", FakeReply::of({}), "forgotten:"},
  };
  for (const auto& row : rows) {
    for (const Strategy strategy : row.in_session ? of_sessions : of_rows) {
      start(strategy);
      reply_with(row.reply);
      const std::string words = said(row.question);
      EXPECT_TRUE(words.starts_with(row.words)) << to_string(strategy) << " " << row.question << ": " << words;
      EXPECT_LT(server.queries.size(), 100U);
      // The server keeps the plan for all names, which may be one for few names.
      const bool is_planned = row.in_session && (row.question == "list" || row.question == "forget");
      EXPECT_EQ(server.queries.back().commands.front().text, is_planned ? without_nested_loops_sql : "");
      EXPECT_EQ(server.queries.back().commands.size(), is_planned ? 2U : 1U);
    }
  }
  start(Strategy::table);
  server.reply = [](const FakeQuery& query) {
    return FakeReply::of(std::vector<Rows::Row>(std::stoul(query.param(0)), {"a", "f", "", "1", {}, {}}));
  };
  EXPECT_EQ(said("list"), failed(errc::unavailable, "more than 100000 locks; too many to list"));
}

// The row of its token is called otherwise.
TEST_F(PostgresAdministration, AdvisoryLocks_AreFoundByTheirKeys) {
  const struct {
    std::string key;
    std::string question;
    std::string name;
    std::vector<Parameter> params;
  } rows[] = {
      {"int64:-5", "inspect", "lock", {"-5", "lock\tint64:-5"}},
      {"int64:-5", "break", "lock", {"-5", "{}"}},
      {"int64:-5", "forget", "lock", {"lock\tint64:-5", "60000000", "100"}},
      {"int64:-5", "forget", "", {"", "60000000", "100"}},
      {"hashtextextended", "inspect", "lock", {"lock", "lock\thashtextextended"}},
      // Has keys in two spaces.
      {"medallion", "inspect", "0000000100000002", {"4294967298", "0000000100000002\tint64:4294967298"}},
      {"medallion", "inspect", "00000001,00000002", {"4294967298", "00000001,00000002\tpair:1,2"}},
  };
  for (const auto& row : rows) {
    start(Strategy::advisory, row.key);
    (void)said(row.question, row.name);
    EXPECT_EQ(params(), row.params) << row.key << " " << row.question;
  }
  reply_with(FakeReply::of({{"lock\tint64:-5", "t", "me", "42", std::nullopt, "0"}}));
  EXPECT_EQ(said("inspect"), "lock held by me token 42 waiters 0; ");
}

// Somebody is changing it.
TEST_F(PostgresAdministration, BrokenRow_WaitersAreNotified) {
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
TEST_F(PostgresAdministration, TerminatedSession_IsPolledUntilItEnds) {
  for (const Strategy strategy : of_sessions) {
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

TEST_F(PostgresAdministration, Doctor_ReportsAnswersAndChangesNothing) {
  const auto now = std::chrono::floor<std::chrono::seconds>(engine.clock().wall_now().time_since_epoch());
  server.reply = [now](const FakeQuery& query) {
    const auto asks_for = [&query](const std::string& word) { return query.sql().find(word) != std::string::npos; };
    EXPECT_TRUE(query.sql().starts_with("SELECT")) << query.sql();
    if (asks_for("server_version")) return FakeReply::of({{"15.13", std::to_string(now.count()), "t"}});
    if (asks_for("pg_settings")) return FakeReply::of({{"fsync", "off", "off"}});
    if (asks_for("pg_stat_replication")) return FakeReply::refused("42501");
    if (asks_for("SELECT version FROM")) return FakeReply::refused("42P01");
    return FakeReply{};
  };
  const std::string words = said("diagnose");
  for (const char* const finding :
       {"\nok server: fake:5432/locks answered", "\nok version: PostgreSQL 15.13", "\nok clock: ", "\nwarning fsync: ",
        "\nnote replication: cannot be checked: ", "\nerror schema: schema \"dlock\" does not exist"}) {
    const auto at = words.find(finding);
    EXPECT_TRUE(at != words.npos && words.find(finding, at + 1) == words.npos) << finding << " in " << words;
  }
  EXPECT_EQ(server.dialled, 1) << "nothing is set up";
  EXPECT_EQ(server.queries.size(), 9U);
  reply_with(FakeReply::held());
  const std::string silent = said("diagnose");
  EXPECT_EQ(std::count(silent.begin(), silent.end(), '\n'), 2) << silent;
  server.break_connections();
  server.dialling = FakeServer::Dialling::fail;
  EXPECT_EQ(said("diagnose"), "\nerror server: fake: connection refused\n");
}

// The server is none of PostgreSQL's, and answers each question with the same row.
TEST_F(PostgresAdministration, InvalidAnswer_DoctorContinues) {
  for (const char* const cell : {"", "t", "meta"}) {
    reply_with(FakeReply::of({std::vector<std::optional<std::string>>(12, cell)}));
    EXPECT_NE(said("diagnose").find(" server: "), std::string::npos) << cell;
  }
}

}  // namespace

}  // namespace dlock::postgres

#include "backends/postgres/administration/diagnosis.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "backends/postgres/postgres_backend.hpp"
#include "tests/simulation/postgres/fake_connection.hpp"
#include "tests/support/manual_engine.hpp"
#include "tests/support/recording_host.hpp"

namespace dlock::postgres {

namespace {

using namespace std::chrono_literals;
using Severity = Finding::Severity;

class PostgresDiagnosis : public testing::Test {
 protected:
  PostgresDiagnosis() {
    Options options;
    options.connect_timeout = options.response_timeout = 5s;
    backend.emplace(host, options, server.connections());
  }
  std::vector<Finding> findings() {
    std::optional<std::vector<Finding>> found;
    backend->diagnose([&](const Result<std::vector<Finding>>& result) {
      EXPECT_FALSE(found) << "answered twice";
      found = result.value();
    });
    EXPECT_FALSE(found) << "answered inside the call";
    engine.advance(5s);
    EXPECT_TRUE(found) << "not answered";
    return found.value_or(std::vector<Finding>{});
  }
  // As in "error server: connection refused".
  static std::vector<std::string> words_of(const std::vector<Finding>& findings) {
    constexpr const char* words[] = {"ok", "note", "warning", "error"};
    std::vector<std::string> all;
    for (const auto& [severity, check, message] : findings) {
      all.push_back(words[static_cast<std::size_t>(severity)] + (" " + check + ": ") + message);
    }
    return all;
  }
  static bool asks_for(const FakeQuery& query, const std::string& word) {
    return query.sql().find(word) != std::string::npos;
  }

  test::ManualEngine engine;
  FakeServer server;
  test::RecordingHost host{engine};
  std::optional<PostgresBackend> backend;
};

TEST_F(PostgresDiagnosis, JudgesWhatWasAnsweredAndChangesNothing) {
  const auto now = std::chrono::floor<std::chrono::seconds>(engine.clock().wall_now().time_since_epoch());
  server.reply = [now](const FakeQuery& query) {
    if (asks_for(query, "server_version")) return FakeReply::of({{"15.13", std::to_string(now.count()), "t"}});
    if (asks_for(query, "pg_settings")) return FakeReply::of({{"fsync", "off", "off"}});
    if (asks_for(query, "pg_stat_replication")) return FakeReply::refused("42501");
    if (asks_for(query, "SELECT version FROM")) return FakeReply::refused("42P01");
    return FakeReply{};
  };
  const auto found = words_of(findings());
  const auto says = [&](const std::string& start) {
    return std::count_if(found.begin(), found.end(), [&](const auto& each) { return each.starts_with(start); });
  };
  EXPECT_EQ(says("ok server: fake:5432/locks answered"), 1);
  EXPECT_EQ(says("ok version: PostgreSQL 15.13"), 1);
  EXPECT_EQ(says("ok clock: "), 1);
  EXPECT_EQ(says("warning fsync: "), 1);
  EXPECT_EQ(says("note replication: cannot be checked: "), 1);
  EXPECT_EQ(says("error schema: schema \"dlock\" does not exist"), 1) << "the version is not missed";
  EXPECT_EQ(server.dialled, 1) << "nothing is set up";
  EXPECT_EQ(server.queries.size(), 9U);
  for (const FakeQuery& query : server.queries) EXPECT_TRUE(query.sql().starts_with("SELECT")) << query.sql();
}

TEST_F(PostgresDiagnosis, AServerThatDoesNotAnswerIsTheOnlyFinding) {
  server.reply = [](const FakeQuery&) { return FakeReply::held(); };
  ASSERT_EQ(findings().size(), 1U);
  server.break_connections();
  server.dialling = FakeServer::Dialling::fail;
  EXPECT_EQ(words_of(findings()), std::vector<std::string>{"error server: fake: connection refused"});
}

TEST_F(PostgresDiagnosis, NobodyIsCalledAfterItsDestruction) {
  backend->diagnose([](const Result<std::vector<Finding>>&) { FAIL(); });
  backend.reset();
  engine.advance(1min);
}

}  // namespace

}  // namespace dlock::postgres

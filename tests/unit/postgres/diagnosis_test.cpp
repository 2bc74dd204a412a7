#include "backends/postgres/administration/diagnosis.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "backends/postgres/sql/schema_statements.hpp"
#include "tests/simulation/postgres/fake_connection.hpp"
#include "tests/support/manual_engine.hpp"

namespace dlock::postgres {

namespace {

using namespace std::chrono_literals;
using Severity = Finding::Severity;

struct SilentObserver final : common::ConnectionObserver {
  void connected() override {}
  void broken(const Failure& /*why*/) override {}
};

class PostgresDiagnosis : public testing::Test {
 protected:
  std::vector<Finding> findings(std::chrono::nanoseconds within = 5s) {
    std::optional<std::vector<Finding>> found;
    diagnose(*commands, [&](Result<std::vector<Finding>> result) {
      EXPECT_FALSE(found) << "answered twice";
      found = result.ok() ? result.value() : std::vector<Finding>{};
    });
    EXPECT_FALSE(found) << "answered inside the call";
    engine.advance(within);
    EXPECT_TRUE(found) << "not answered";
    return found.value_or(std::vector<Finding>{});
  }
  static bool asks_for(const FakeQuery& query, const std::string& word) {
    return query.sql().find(word) != std::string::npos;
  }

  test::ManualEngine engine;
  FakeServer server;
  Options options = [] {
    Options o;
    o.response_timeout = 5s;
    return o;
  }();
  Dialling dialling{options, server.connections(), 5s, 5s};
  Schema schema{engine, options, dialling};
  SilentObserver observer;
  std::optional<Commands> commands{std::in_place, engine, options, dialling, schema, observer};
};

TEST_F(PostgresDiagnosis, JudgesWhatWasAnswered) {
  server.reply = [](const FakeQuery& query) {
    if (asks_for(query, "server_version")) return FakeReply::of({{"15.13", "0", "t"}});
    if (asks_for(query, "pg_settings")) return FakeReply::of({{"fsync", "off", "off"}});
    return FakeReply{};
  };
  const auto found = findings();
  const auto says = [&](const std::string& check, Severity severity) {
    return std::any_of(found.begin(), found.end(),
                       [&](const Finding& f) { return f.check == check && f.severity == severity; });
  };
  EXPECT_TRUE(says("server", Severity::ok));
  EXPECT_TRUE(says("version", Severity::ok));
  EXPECT_TRUE(says("fsync", Severity::warning));
  EXPECT_TRUE(says("schema", Severity::error)) << "there is none, and no right to make it";
}

TEST_F(PostgresDiagnosis, ChangesNothing) {
  (void)findings();
  EXPECT_EQ(server.dialled, 1) << "nothing is set up";
  for (const FakeQuery& query : server.queries) EXPECT_TRUE(query.sql().starts_with("SELECT")) << query.sql();
  EXPECT_GE(server.queries.size(), 8U);
}

TEST_F(PostgresDiagnosis, AServerThatCannotBeReachedIsAFinding) {
  server.dialling = FakeServer::Dialling::fail;
  const auto found = findings();
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].severity, Severity::error);
  EXPECT_EQ(found[0].check, "server");
  EXPECT_NE(found[0].message.find("connection refused"), std::string::npos);
}

TEST_F(PostgresDiagnosis, AServerThatDoesNotAnswerIsAFindingInTime) {
  server.reply = [](const FakeQuery&) { return FakeReply::held(); };
  const auto found = findings(5s);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].severity, Severity::error);
}

TEST_F(PostgresDiagnosis, WhatMayNotBeAskedIsNoted) {
  server.reply = [](const FakeQuery& query) {
    return asks_for(query, "pg_stat_replication") ? FakeReply::refused("42501") : FakeReply{};
  };
  const auto found = findings();
  EXPECT_EQ(std::count_if(found.begin(), found.end(),
                          [](const Finding& f) {
                            return f.check == "replication" && f.severity == Severity::note &&
                                   f.message.starts_with("cannot be checked");
                          }),
            1);
}

TEST_F(PostgresDiagnosis, AVersionThatCannotBeReadIsNotMissed) {
  const std::string version = schema_statements(options.schema).version.sql;
  server.reply = [&](const FakeQuery& query) {
    return query.sql() == version ? FakeReply::refused("42P01") : FakeReply{};
  };
  for (const Finding& finding : findings()) {
    EXPECT_EQ(finding.message.find("cannot be checked"), std::string::npos) << finding.message;
  }
}

TEST_F(PostgresDiagnosis, NobodyIsCalledAfterItsDestruction) {
  diagnose(*commands, [](const Result<std::vector<Finding>>&) { FAIL(); });
  commands.reset();
  engine.advance(1min);
}

}  // namespace

}  // namespace dlock::postgres

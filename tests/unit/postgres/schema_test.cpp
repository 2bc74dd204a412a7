#include "backends/postgres/schema/schema.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "table_row.hpp"
#include "tests/simulation/postgres/fake_connection.hpp"
#include "tests/support/manual_engine.hpp"

namespace dlock::postgres {

namespace {

using namespace std::chrono_literals;
using Made = std::vector<std::string>;

// The catalogue of a database, as far as it is asked about.
struct FakeCatalogue {
  bool schema = false;
  bool may_use = true;
  bool may_create = true;
  bool may_create_schemas = true;
  std::vector<Rows::Row> tables;
  std::optional<std::string> version;

  void add(const TableDefinition& table, const std::string& columns = {}) {
    tables.push_back(table_row(table));
    if (!columns.empty()) tables.back()[1] = columns;
  }
  [[nodiscard]] bool has(std::string_view name) const {
    return std::any_of(tables.begin(), tables.end(), [&](const Rows::Row& row) { return row[0] == name; });
  }
  void fill() {
    schema = true;
    for (const TableDefinition& table : layout()) {
      if (!has(table.name)) add(table);
    }
    if (!version) version = std::to_string(schema_version);
  }
};

class PostgresSchemaSetUp : public testing::Test {
 protected:
  PostgresSchemaSetUp() {
    server.reply = [this](const FakeQuery& query) { return answer(query); };
  }

  FakeReply answer(const FakeQuery& query) {
    if (next_reply) {
      if (auto reply = next_reply(query)) return *std::move(reply);
    }
    FakeReply reply;
    for (const Command& command : query.commands) reply.results.push_back(answer(command, query.commands.size() > 1));
    return reply;
  }
  Rows answer(const Command& command, bool creating) {
    const std::string& sql = command.statement != nullptr ? command.statement->sql : command.text;
    const auto flag = [](bool value) { return std::optional<std::string>(value ? "t" : "f"); };
    if (sql == statements.rights.sql) {
      return {.rows = {{flag(there.schema), flag(there.schema && there.may_use), flag(there.schema && there.may_create),
                        flag(there.may_create_schemas)}}};
    }
    if (sql == statements.tables.sql) return {.rows = there.tables};
    if (sql == statements.version.sql) {
      return there.version ? Rows{.rows = {{there.version}}} : Rows{};
    }
    if (sql.starts_with("CREATE SCHEMA")) there.schema = true;
    if (creating && sql.starts_with("INSERT") && !there.version) {
      there.version = std::to_string(schema_version);
      return {.affected = 1};
    }
    for (const TableDefinition& table : layout()) {
      const bool names = sql.find("TABLE IF NOT EXISTS \"dlock\".\"" + std::string(table.name) + "\"") != sql.npos;
      if (names && !there.has(table.name)) there.add(table);
    }
    return {};
  }

  // The n-th caller's answer: "ok", or the failure's words, once it is there.
  void set_up(std::chrono::nanoseconds within = 10s) {
    const std::size_t caller = answers.size();
    answers.emplace_back();
    schema->set_up(engine.now() + within, [this, caller](const std::optional<Failure>& why_not) {
      EXPECT_FALSE(answers[caller].has_value()) << "answered twice";
      answers[caller] = why_not.value_or(Failure{{}, "ok"});
      if (when_answered) when_answered();
    });
  }
  std::string result() {
    set_up();
    engine.run();
    return answers.back() ? answers.back()->detail : "none";
  }
  Made initialize() {
    std::optional<Made> made;
    schema->initialize(engine.now() + 10s, [&](Result<Made> result) {
      made = result.ok() ? result.value() : Made{result.failure().detail};
    });
    engine.run();
    return made.value_or(Made{"none"});
  }
  [[nodiscard]] std::size_t creations() const { return server.count(creation("dlock", Durability::sync, true)[0]); }
  [[nodiscard]] bool is_creation(const FakeQuery& query) const { return query.sql().starts_with("BEGIN"); }
  void refuse_creation(const std::string& sqlstate, int times = 1) {
    next_reply = [this, sqlstate, times](const FakeQuery& query) mutable -> std::optional<FakeReply> {
      if (!is_creation(query) || times-- <= 0) return std::nullopt;
      return FakeReply::refused(sqlstate, 3);
    };
  }

  test::ManualEngine engine;
  FakeServer server;
  Options options;
  Dialling dialling{options, server.connections(), 5s, 5s};
  const SchemaStatements statements = schema_statements("dlock");
  FakeCatalogue there;
  std::function<std::optional<FakeReply>(const FakeQuery&)> next_reply;
  std::vector<std::optional<Failure>> answers;
  std::function<void()> when_answered;
  std::optional<Schema> schema{std::in_place, engine, options, dialling};
};

// --- What is made ----------------------------------------------------------------------------------------------------

TEST_F(PostgresSchemaSetUp, MakesEverythingInAnEmptyDatabase) {
  EXPECT_EQ(result(), "ok");
  EXPECT_TRUE(there.schema);
  EXPECT_EQ(there.tables.size(), layout().size());
  EXPECT_EQ(creations(), 1U);
  EXPECT_EQ(server.open(), 0U) << "its connection is closed";
}

TEST_F(PostgresSchemaSetUp, SaysWhatItMade) {
  there.add(layout()[1]);
  there.schema = true;
  Made all_others;
  for (const TableDefinition& table : layout()) {
    if (table.name != "lease") all_others.push_back("table \"dlock\".\"" + std::string(table.name) + "\"");
  }
  EXPECT_EQ(initialize(), all_others);
  EXPECT_EQ(initialize(), Made{});
}

TEST_F(PostgresSchemaSetUp, SaysWhatItMadeInAnEmptyDatabase) {
  options.durability = Durability::unlogged;
  const Made made = initialize();
  ASSERT_EQ(made.size(), layout().size() + 1);
  EXPECT_EQ(made[0], "schema \"dlock\"");
  EXPECT_EQ(made[1], "table \"dlock\".\"meta\"");
  EXPECT_EQ(made[2], "unlogged table \"dlock\".\"lease\"");
}

TEST_F(PostgresSchemaSetUp, DoesNotClaimWhatOthersMadeBeforeItGotTheLock) {
  next_reply = [this](const FakeQuery& query) -> std::optional<FakeReply> {
    if (is_creation(query)) there.fill();  // while it waited
    return std::nullopt;
  };
  EXPECT_EQ(initialize(), Made{});
}

TEST_F(PostgresSchemaSetUp, OnlyLooksWhereNothingIsMissing) {
  there.fill();
  there.may_create = false;
  there.may_create_schemas = false;
  EXPECT_EQ(result(), "ok");
  EXPECT_EQ(creations(), 0U);
}

TEST_F(PostgresSchemaSetUp, WritesAVersionThatIsMissing) {
  there.fill();
  there.version.reset();
  EXPECT_EQ(initialize(), Made{"the version in table \"dlock\".\"meta\""});
  EXPECT_EQ(there.version, "1");
}

TEST_F(PostgresSchemaSetUp, MakesTablesInASchemaThatSomebodyMadeForIt) {
  there.schema = true;
  there.may_create_schemas = false;
  EXPECT_EQ(result(), "ok");
  const auto& commands = std::find_if(server.queries.begin(), server.queries.end(), [&](const auto& query) {
                           return is_creation(query);
                         })->commands;
  EXPECT_TRUE(std::none_of(commands.begin(), commands.end(), [](const Command& command) {
    return command.text.starts_with("CREATE SCHEMA");
  })) << "that takes a right that it does not have, even if the schema exists";
}

TEST_F(PostgresSchemaSetUp, TakesAVersionThatItMayNotReadForGood) {
  there.fill();
  there.tables[0][3] = "f";
  EXPECT_EQ(result(), "ok");
  EXPECT_EQ(creations(), 0U);
}

// --- What is refused -------------------------------------------------------------------------------------------------

TEST_F(PostgresSchemaSetUp, ANewerVersionIsLeftAlone) {
  there.fill();
  there.tables.pop_back();  // it may do without
  there.version = "2";
  EXPECT_EQ(
      result(),
      "fake:5432/locks: schema \"dlock\" has version 2 of dlock's tables, and this is a dlock for version 1: use a "
      "newer dlock, or another schema");
  EXPECT_EQ(answers.back()->code, errc::unsupported);
  EXPECT_EQ(creations(), 0U);
}

TEST_F(PostgresSchemaSetUp, AVersionThatTurnsUpMeanwhileIsSeen) {
  next_reply = [this](const FakeQuery& query) -> std::optional<FakeReply> {
    if (is_creation(query)) there.version = "7";
    return std::nullopt;
  };
  (void)result();
  EXPECT_EQ(answers.back()->code, errc::unsupported);
  EXPECT_NE(answers.back()->detail.find("version 7"), std::string::npos) << answers.back()->detail;
}

TEST_F(PostgresSchemaSetUp, TablesOfSomebodyElseAreLeftAlone) {
  there.schema = true;
  there.add(layout()[1], "id,price");
  EXPECT_EQ(result(),
            "fake:5432/locks: table \"dlock\".\"lease\" is not dlock's: it has the columns id,price instead of "
            "name,owner,holder,token,expires_at,waiting_until,waiters; use another schema");
  EXPECT_EQ(answers.back()->code, errc::invalid_argument);
  EXPECT_EQ(creations(), 0U);
}

TEST_F(PostgresSchemaSetUp, SomebodyElsesTableOfVersionsIsLeftAlone) {
  there.schema = true;
  there.add(layout()[0], "version");
  EXPECT_NE(result().find("\"meta\" is not dlock's"), std::string::npos) << answers.back()->detail;
}

TEST_F(PostgresSchemaSetUp, AViewInTheWayIsNoticed) {
  next_reply = [this](const FakeQuery& query) -> std::optional<FakeReply> {
    if (!is_creation(query)) return std::nullopt;
    FakeReply reply;
    for (const Command& command : query.commands) {
      if (command.text.find("\"fence\"") == std::string::npos) {
        reply.results.push_back(answer(command, true));
      } else {
        reply.results.emplace_back();  // "already exists, skipping"
      }
    }
    return reply;
  };
  EXPECT_NE(result().find("\"dlock\".\"fence\" is not a table"), std::string::npos);
}

TEST_F(PostgresSchemaSetUp, ARoleThatMayNotIsToldWhatSomebodyElseHasToDo) {
  there.may_create_schemas = false;
  EXPECT_EQ(
      result(),
      "fake:5432/locks: schema \"dlock\" does not exist, and this role may not create schemas in the database: run "
      "\"dlock init\" with a role that may, and then GRANT USAGE ON SCHEMA \"dlock\" TO <role>; GRANT SELECT, "
      "INSERT, UPDATE ON ALL TABLES IN SCHEMA \"dlock\" TO <role>");
  EXPECT_EQ(answers.back()->code, errc::access_denied);
  there.fill();
  there.may_create = false;
  there.tables.pop_back();
  EXPECT_NE(
      result().find("lacks the tables \"" + std::string(layout().back().name) + "\", and this role may not create"),
      std::string::npos);
  EXPECT_EQ(answers.back()->code, errc::access_denied);
  there.may_use = false;
  EXPECT_NE(result().find("this role may not use schema \"dlock\""), std::string::npos);
  EXPECT_EQ(answers.back()->code, errc::access_denied);
  EXPECT_EQ(creations(), 0U);
}

TEST_F(PostgresSchemaSetUp, ARefusalThatTheRightsDidNotForetellIsTold) {
  refuse_creation("42501");
  EXPECT_NE(result().find("GRANT USAGE"), std::string::npos);
  EXPECT_EQ(answers.back()->code, errc::access_denied);
  EXPECT_EQ(creations(), 1U);
}

// --- Others at the same time -----------------------------------------------------------------------------------------

TEST_F(PostgresSchemaSetUp, LosingARaceMeansToLookAgain) {
  for (const char* sqlstate : {"23505", "42P07", "42710", "42P06", "40P01", "55P03"}) {
    there = {};
    server.queries.clear();
    refuse_creation(sqlstate);
    EXPECT_EQ(result(), "ok") << sqlstate;
    EXPECT_EQ(creations(), 2U) << sqlstate;
    EXPECT_EQ(server.count("ROLLBACK"), 1U) << sqlstate;
  }
}

TEST_F(PostgresSchemaSetUp, DoesNotLookAgainForEver) {
  refuse_creation("55P03", 1'000'000);
  EXPECT_NE(result(), "ok");
  EXPECT_EQ(answers.back()->code, errc::unavailable) << "not busy: no lock is";
  EXPECT_EQ(creations(), 10U);
}

TEST_F(PostgresSchemaSetUp, CallersAtTheSameTimeShareOneRun) {
  set_up();
  set_up();
  EXPECT_FALSE(answers[0] || answers[1]) << "answered inside the call";
  engine.run();
  EXPECT_EQ(answers[0]->detail, "ok");
  EXPECT_EQ(answers[1]->detail, "ok");
  EXPECT_EQ(creations(), 1U);
  EXPECT_EQ(server.dialled, 1);
}

TEST_F(PostgresSchemaSetUp, TheNextCallAfterAFailureTriesAgain) {
  there.may_create_schemas = false;
  (void)result();
  there.may_create_schemas = true;
  EXPECT_EQ(result(), "ok");
  EXPECT_EQ(server.dialled, 2);
}

TEST_F(PostgresSchemaSetUp, AHandlerMayCallAgain) {
  there.may_create_schemas = false;
  when_answered = [&] {
    when_answered = nullptr;
    there.may_create_schemas = true;
    set_up();
  };
  (void)result();
  engine.run();
  ASSERT_EQ(answers.size(), 2U);
  EXPECT_EQ(answers[0]->code, errc::access_denied);
  EXPECT_EQ(answers[1]->detail, "ok");
}

// --- Trouble ---------------------------------------------------------------------------------------------------------

TEST_F(PostgresSchemaSetUp, EachCallerIsAnsweredByItsDeadline) {
  next_reply = [this](const FakeQuery& query) -> std::optional<FakeReply> {
    return is_creation(query) ? std::optional(FakeReply::held()) : std::nullopt;
  };
  set_up(2s);
  set_up(30s);
  engine.advance(2s);
  ASSERT_TRUE(answers[0]);
  EXPECT_EQ(answers[0]->code, errc::unavailable);
  EXPECT_FALSE(answers[1]);
  engine.advance(20s);
  EXPECT_FALSE(answers[1]) << "the server may keep it waiting longer than an answer takes";
  next_reply = nullptr;
  server.release();
  engine.run();
  EXPECT_EQ(answers[1]->detail, "ok");
}

TEST_F(PostgresSchemaSetUp, NothingGoesOnThatNobodyWaitsFor) {
  server.reply = [](const FakeQuery&) { return FakeReply::held(); };
  set_up(2s);
  engine.advance(2s);
  EXPECT_TRUE(answers[0]);
  EXPECT_EQ(server.open(), 0U);
  engine.advance(1h);
  EXPECT_EQ(server.dialled, 1);
}

TEST_F(PostgresSchemaSetUp, AServerThatCannotBeReachedIsUnavailable) {
  server.dialling = FakeServer::Dialling::fail;
  EXPECT_EQ(result(), "fake: connection refused");
  EXPECT_EQ(answers.back()->code, errc::unavailable);
  server.dialling = FakeServer::Dialling::refuse_password;
  (void)result();
  EXPECT_EQ(answers.back()->code, errc::access_denied);
}

TEST_F(PostgresSchemaSetUp, ABreakInTheMiddleIsUnavailableNotAmbiguous) {
  next_reply = [this](const FakeQuery& query) -> std::optional<FakeReply> {
    return is_creation(query) ? std::optional(FakeReply::lost()) : std::nullopt;
  };
  EXPECT_NE(result(), "ok");
  EXPECT_EQ(answers.back()->code, errc::unavailable);
  next_reply = nullptr;
  EXPECT_EQ(result(), "ok");
}

TEST_F(PostgresSchemaSetUp, NobodyIsCalledAfterItsDestruction) {
  set_up();
  set_up();
  when_answered = [&] { schema.reset(); };  // while there is another to tell
  engine.run();
  EXPECT_TRUE(answers[0]);
  EXPECT_FALSE(answers[1]);
  schema.emplace(engine, options, dialling);
  when_answered = nullptr;
  set_up(1s);
  schema.reset();
  engine.advance(10s);
  EXPECT_FALSE(answers[2]);
  EXPECT_EQ(server.open(), 0U);
}

}  // namespace

}  // namespace dlock::postgres

#include "backends/postgres/sessions/commands.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "rows_fixture.hpp"
#include "table_row.hpp"

namespace dlock::postgres {

namespace {

struct Answer {
  Outcome outcome;
  std::string value;  // the first of the last command
  TimePoint when;
};

class PostgresCommands : public testing::Test {
 protected:
  PostgresCommands() {
    server.reply = [this](const FakeQuery& query) {
      if (query.purpose.word == "setup") return set_up(query);
      return reply ? reply(query) : FakeReply::of({{"done"}});
    };
  }
  // A role that may not make anything, or a schema that is there.
  FakeReply set_up(const FakeQuery& query) const {
    if (hold_set_up) return FakeReply::held();
    FakeReply answer;
    for (const Command& command : query.commands) {
      Rows rows;
      if (command.statement != nullptr && command.statement->sql == statements.rights.sql) {
        rows = {.rows = {{may_use ? "t" : "f", may_use ? "t" : "f", "f", "f"}}};
      } else if (command.statement != nullptr && command.statement->sql == statements.tables.sql && may_use) {
        for (const TableDefinition& table : layout()) {
          rows.rows.push_back(table_row(table));
        }
      } else if (command.statement != nullptr && command.statement->sql == statements.version.sql) {
        rows = {.rows = {{std::to_string(schema_version)}}};
      }
      answer.results.push_back(rows);
    }
    return answer;
  }
  // Refuses the first so many.
  void refuse(const std::string& sqlstate, int times = 1'000'000) {
    reply = [sqlstate, left = times](const FakeQuery&) mutable {
      return left-- > 0 ? FakeReply::refused(sqlstate) : FakeReply::of({{"done"}});
    };
  }
  void ask(const std::string& sql = "a", std::chrono::nanoseconds within = response_timeout,
           MissingSchema missing = MissingSchema::make) {
    const std::size_t number = answers.size();
    answers.emplace_back();
    Query query{.commands = {{.text = sql}}};
    query.done = [this, number](const Outcome& outcome, const Results& results) {
      EXPECT_FALSE(answers[number]) << "answered twice";
      answers[number] = {outcome, results.empty() ? "" : results.back().text(0, 0), engine.now()};
      if (when_answered) when_answered();
    };
    line.commands->run(std::move(query), engine.now() + within, missing);
    EXPECT_FALSE(answers[number]) << "answered inside the call";
  }
  [[nodiscard]] const Answer& answer(std::size_t number = 0) const { return answers.at(number).value(); }

  test::ManualEngine engine;
  FakeServer server;
  const SchemaStatements statements = schema_statements("dlock");
  CommandLine line{engine, server, row_options(Strategy::table)};
  std::function<FakeReply(const FakeQuery&)> reply;
  bool may_use = true;
  bool hold_set_up = false;
  std::function<void()> when_answered;
  std::vector<std::optional<Answer>> answers;
};

TEST_F(PostgresCommands, ShareOneConnectionAndItsRoundTrips) {
  ask("a");
  ask("b");
  engine.run();
  EXPECT_EQ(answer(0).value, "done");
  EXPECT_EQ(answer(1).value, "done");
  EXPECT_EQ(server.dialled, 1);
  EXPECT_EQ(server.queries.size(), 2U);
  EXPECT_EQ(line.times_connected, 1);
}

TEST_F(PostgresCommands, NobodyNeedsToWaitForAnAnswer) {
  for (const char* const sqlstate : {"", "40001", "42501", "42P01", "25006"}) {
    refuse(sqlstate, 1);
    line.commands->run({.commands = {{.text = "a"}}}, engine.now() + 4s);
    engine.advance(5s);
  }
  EXPECT_EQ(server.count("a"), 1U + 2U + 1U + 2U + 2U);
}

// --- Errors ----------------------------------------------------------------------------------------------------------

TEST_F(PostgresCommands, WhatTheServerRolledBackIsTriedAgain) {
  for (const char* const sqlstate : {"40001", "40P01", "57014", "23505"}) {
    answers.clear();
    server.queries.clear();
    refuse(sqlstate, 3);
    ask();
    engine.advance(1s);
    ASSERT_TRUE(answers[0]) << sqlstate;
    EXPECT_EQ(answer().outcome.problem, Problem::none) << sqlstate;
    EXPECT_EQ(answer().outcome.sent, server.queries.back().sent) << "of the attempt that counts";
    EXPECT_EQ(server.queries.size(), 4U) << sqlstate;
  }
  EXPECT_EQ(server.dialled, 1);
}

TEST_F(PostgresCommands, WhatIsRolledBackAgainAndAgainEndsInTime) {
  refuse("40001");
  const TimePoint deadline = engine.now() + 4s;
  ask();
  engine.advance(1h);
  EXPECT_EQ(answer().outcome.problem, Problem::refused);
  EXPECT_EQ(answer().outcome.failure.code, errc::unavailable) << "was not carried out";
  EXPECT_LE(answer().when, deadline);
  EXPECT_GT(server.queries.size(), 8U);
  EXPECT_LT(server.queries.size(), 40U);
}

TEST_F(PostgresCommands, WhatIsRefusedForGoodIsNotTriedAgain) {
  const std::pair<const char*, errc> cases[] = {
      {"42501", errc::access_denied}, {"0A000", errc::unsupported}, {"53200", errc::unavailable},
      {"55P03", errc::timed_out},     {"XX000", errc::unavailable}, {"42601", errc::protocol},
  };
  for (const auto& [sqlstate, code] : cases) {
    answers.clear();
    server.queries.clear();
    refuse(sqlstate);
    ask();
    engine.run();
    ASSERT_TRUE(answers[0]) << sqlstate;
    EXPECT_EQ(answer().outcome.problem, Problem::refused);
    EXPECT_EQ(answer().outcome.failure.code, code) << sqlstate;
    EXPECT_EQ(server.queries.size(), 1U) << sqlstate;
  }
}

TEST_F(PostgresCommands, AMissingPermissionSaysWhatToGrant) {
  refuse("42501");
  ask();
  engine.run();
  EXPECT_NE(answer().outcome.failure.detail.find("GRANT"), std::string::npos) << answer().outcome.failure.detail;
}

TEST_F(PostgresCommands, AStandbyIsLeftForAnotherServer) {
  reply = [](const FakeQuery& query) {
    return query.connection == 1 ? FakeReply::refused("25006") : FakeReply::of({{"done"}});
  };
  ask();
  engine.advance(100ms);
  EXPECT_EQ(answer().value, "done");
  EXPECT_EQ(server.dialled, 2);
}

TEST_F(PostgresCommands, WhereNoAnswerComesTheLastRefusalIsToldAsWell) {
  reply = [](const FakeQuery& query) {
    return query.connection == 1 ? FakeReply::refused("25006") : FakeReply::held();
  };
  ask();
  engine.advance(response_timeout + 1s);
  EXPECT_EQ(answer().outcome.failure.code, errc::ambiguous);
  EXPECT_NE(answer().outcome.failure.detail.find("before that: "), std::string::npos)
      << answer().outcome.failure.detail;
  EXPECT_NE(answer().outcome.failure.detail.find("standby"), std::string::npos) << answer().outcome.failure.detail;
  reply = nullptr;
  ask();
  engine.advance(response_timeout);
  EXPECT_EQ(answer(1).value, "done");
  reply = [](const FakeQuery&) { return FakeReply::held(); };
  ask();
  engine.advance(response_timeout + 1s);
  EXPECT_EQ(answer(2).outcome.failure.detail.find("before that: "), std::string::npos) << "that is long past";
}

TEST_F(PostgresCommands, APoolerThatForgotWhatWasPreparedIsConnectedToAgain) {
  reply = [](const FakeQuery& query) {
    return query.connection < 3 ? FakeReply::refused("26000") : FakeReply::of({{"done"}});
  };
  ask();
  engine.advance(1s);
  EXPECT_EQ(answer().value, "done");
  EXPECT_EQ(server.dialled, 3);
}

TEST_F(PostgresCommands, OthersOnAConnectionThatIsLeftAreInDoubt) {
  reply = [](const FakeQuery& query) {
    if (query.connection > 1) return FakeReply::of({{"done"}});
    return query.sql() == "a" ? FakeReply::refused("25006") : FakeReply::held();
  };
  ask("a");
  ask("b");
  engine.advance(1s);
  EXPECT_EQ(answer(0).outcome.problem, Problem::none);
  EXPECT_EQ(answer(1).outcome.problem, Problem::unknown_outcome);
  EXPECT_EQ(answer(1).outcome.failure.code, errc::ambiguous);
}

TEST_F(PostgresCommands, WhatMayHaveBeenCommittedIsNotTriedAgain) {
  for (const char* const sqlstate : {"57P01", "57P05", "40003", "08006"}) {
    answers.clear();
    server.queries.clear();
    refuse(sqlstate);
    ask();
    engine.advance(10s);
    EXPECT_EQ(answer().outcome.failure.code, errc::ambiguous) << sqlstate;
    EXPECT_EQ(server.queries.size(), 1U) << sqlstate;
  }
}

TEST_F(PostgresCommands, AnAnswerThatIsLostIsNotAskedForAgain) {
  reply = [](const FakeQuery&) { return FakeReply::lost(); };
  ask();
  engine.advance(10s);
  EXPECT_EQ(answer().outcome.problem, Problem::unknown_outcome);
  EXPECT_EQ(server.queries.size(), 1U);
  EXPECT_EQ(line.failures.size(), 1U);
}

TEST_F(PostgresCommands, AServerThatCannotBeReachedIsUnavailable) {
  server.dialling = FakeServer::Dialling::fail;
  ask();
  engine.advance(10s);
  EXPECT_EQ(answer().outcome.problem, Problem::not_sent);
  EXPECT_EQ(answer().outcome.failure.code, errc::unavailable);
}

TEST_F(PostgresCommands, AnAnswerIsAwaitedUntilTheDeadline) {
  reply = [](const FakeQuery&) { return FakeReply::held(); };
  const TimePoint deadline = engine.now() + 1s;
  ask("a", 1s);
  engine.advance(10s);
  EXPECT_EQ(answer().outcome.problem, Problem::unknown_outcome);
  EXPECT_EQ(answer().when, deadline);
}

// --- The schema ------------------------------------------------------------------------------------------------------

TEST_F(PostgresCommands, AMissingTableIsMadeOnce) {
  refuse("42P01", 1);
  ask();
  engine.run();
  EXPECT_EQ(answer().value, "done");
  EXPECT_EQ(server.count("a"), 2U);

  refuse("42P01", 2);
  ask();
  engine.run();
  EXPECT_EQ(answer(1).outcome.failure.code, errc::invalid_argument);
  EXPECT_NE(answer(1).outcome.failure.detail.find("dlock init"), std::string::npos);
  EXPECT_EQ(server.count("a"), 4U);
}

TEST_F(PostgresCommands, ARoleThatMayNotMakeTheTablesIsToldWhoMay) {
  may_use = false;
  refuse("3F000");
  ask();
  engine.run();
  EXPECT_EQ(answer().outcome.problem, Problem::refused);
  EXPECT_EQ(answer().outcome.failure.code, errc::access_denied);
  EXPECT_NE(answer().outcome.failure.detail.find("dlock init"), std::string::npos);
  EXPECT_EQ(server.count("a"), 1U);
}

TEST_F(PostgresCommands, QuestionsDoNotMakeTables) {
  refuse("42P01");
  ask("a", 4s, MissingSchema::refuse);
  engine.run();
  EXPECT_EQ(answer().outcome.sqlstate, "42P01");
  EXPECT_EQ(server.dialled, 1);
}

TEST_F(PostgresCommands, ATableThatTakesTooLongToMakeIsUnavailable) {
  hold_set_up = true;
  refuse("42P01");
  const TimePoint deadline = engine.now() + 1s;
  ask("a", 1s);
  engine.advance(10s);
  EXPECT_EQ(answer().outcome.failure.code, errc::unavailable);
  EXPECT_EQ(answer().when, deadline);
}

// --- The end ---------------------------------------------------------------------------------------------------------

TEST_F(PostgresCommands, WhoeverIsAnsweredMayEndThem) {
  when_answered = [&] { line.commands.reset(); };
  ask("a");
  ask("b");
  engine.advance(10s);
  EXPECT_TRUE(answers[0]);
  EXPECT_FALSE(answers[1]);
  EXPECT_EQ(server.open(), 0U);
}

TEST_F(PostgresCommands, WhoeverIsInDoubtBecauseAConnectionIsLeftMayEndThem) {
  reply = [](const FakeQuery& query) { return query.sql() == "a" ? FakeReply::refused("25006") : FakeReply::held(); };
  when_answered = [&] { line.commands.reset(); };
  ask("a");
  ask("b");
  engine.advance(10s);
  EXPECT_FALSE(answers[0]);
  EXPECT_TRUE(answers[1]);
}

TEST_F(PostgresCommands, EndInThePauseBeforeAnotherAttempt) {
  refuse("40001");
  ask();
  engine.run();
  line.commands.reset();
  EXPECT_EQ(engine.pending_timers(), 0U);
  engine.advance(1h);
  EXPECT_FALSE(answers[0]);
  EXPECT_EQ(server.queries.size(), 1U);
}

TEST_F(PostgresCommands, EndWhileTheSchemaIsMade) {
  hold_set_up = true;
  refuse("42P01");
  ask();
  engine.run();
  line.commands.reset();
  engine.advance(1h);
  EXPECT_FALSE(answers[0]);
}

}  // namespace

}  // namespace dlock::postgres

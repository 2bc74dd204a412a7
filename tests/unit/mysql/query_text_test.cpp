#include "backends/mysql/client/query_text.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

#include "tests/support/mysql_locks.hpp"

namespace dlock::mysql {

namespace {

Result<QueryText> text_for(std::vector<sql::Command> commands) {
  return text_of({.commands = std::move(commands)});
}

struct TextRow {
  std::vector<sql::Command> commands;
  std::string text;
};

// Shows: names
TEST(MysqlQueryText, Parameters_AreWrittenAsLiterals) {
  const struct {
    sql::Command command;
    std::string text;
  } rows[] = {
      {{.text = "SELECT 1"}, "SELECT 1"},
      {{.text = "SELECT ?", .params = {"a'\\\xff"}}, "SELECT X'61275CFF'"},
      {{.text = "SELECT ?, ?", .params = {"", std::nullopt}}, "SELECT '', NULL"},
      {{.text = "SELECT ?", .params = {"?#"}}, "SELECT X'3F23'"},
      {{.text = "(#, #)", .params = {"-9223372036854775808", "9223372036854775807"}},
       "(-9223372036854775808, 9223372036854775807)"},
  };
  for (const auto& [command, text] : rows) EXPECT_EQ(text_for({command}).value().text, text);
}

TEST(MysqlQueryText, BadParameter_RefusesTheQuery) {
  const sql::Command rows[] = {
      {.text = "#", .params = {"1; DROP TABLE x"}},
      {.text = "#", .params = {""}},
      {.text = "#", .params = {std::nullopt}},
      {.text = "#", .params = {"9223372036854775808"}},
      {.text = "#", .params = {"1.5"}},
      {.text = "?", .params = {std::string("a\0b", 3)}},
      {.text = "?"},
      {.text = "1", .params = {"x"}},
  };
  for (const sql::Command& command : rows) {
    const auto text = text_for({command});
    ASSERT_FALSE(text.ok()) << command.text;
    EXPECT_EQ(text.failure().code, errc::invalid_argument);
  }
  EXPECT_FALSE(text_for({}).ok());
}

TEST(MysqlQueryText, SeveralWrites_AreATransaction) {
  const TextRow rows[] = {
      {{{.text = "UPDATE a"}}, "UPDATE a"},
      {{{.text = "SELECT 1"}, {.text = "DO 0"}, {.text = "UPDATE a"}}, "SELECT 1; DO 0; UPDATE a"},
      {{{.text = "SET a = 1"}, {.text = "SHOW b"}, {.text = "UPDATE a"}}, "SET a = 1; SHOW b; UPDATE a"},
      {{{.text = "UPDATE a"}, {.text = "SELECT 1"}}, "START TRANSACTION; UPDATE a; SELECT 1; COMMIT"},
      {{{.text = "UPDATE a"}, {.text = "SELECT 1"}, {.text = "UPDATE b"}},
       "START TRANSACTION; UPDATE a; SELECT 1; UPDATE b; COMMIT"},
      {{{.text = "START TRANSACTION"}, {.text = "UPDATE a"}}, "START TRANSACTION; UPDATE a"},
      {{{.text = "UPDATE a"}, {.text = "COMMIT"}}, "UPDATE a; COMMIT"},
      {{{.text = "DROP a"}, {.text = "DOUBLE b"}}, "START TRANSACTION; DROP a; DOUBLE b; COMMIT"},
  };
  for (const auto& [commands, text] : rows) {
    const QueryText found = text_for(commands).value();
    EXPECT_EQ(found.text, text);
    EXPECT_EQ(found.commands, commands.size());
    EXPECT_EQ(found.statements(), commands.size() + (found.wrapped ? 2 : 0));
  }
}

// Hazard: a Galera node that reports a rolled-back transaction as committed
TEST(MysqlQueryText, ServerThatRetries_IsForbiddenToBeforeWrites) {
  const TextRow rows[] = {
      {{{.text = "SELECT 1"}}, "SELECT 1"},
      {{{.text = "UPDATE a"}}, "SET SESSION wsrep_retry_autocommit = 0; UPDATE a"},
      {{{.text = "UPDATE a"}, {.text = "SELECT 1"}},
       "SET SESSION wsrep_retry_autocommit = 0; START TRANSACTION; UPDATE a; SELECT 1; COMMIT"},
  };
  for (const auto& [commands, expected] : rows) {
    const QueryText text = text_of({.commands = commands}, nullptr, true).value();
    EXPECT_EQ(text.text, expected);
    const auto separators = static_cast<std::size_t>(std::count(expected.begin(), expected.end(), ';'));
    EXPECT_EQ(text.statements(), separators + 1);
    EXPECT_EQ(text.before_commands(), separators + 1 - commands.size() - (text.wrapped ? 1 : 0));
  }
}

TEST(MysqlQueryText, StatementsThatWrite_ArePreparedOnce) {
  const sql::Statement insert{"INSERT a VALUES (?, #)"};
  const sql::Statement update{"UPDATE b SET c = #"};
  const sql::Statement select{"SELECT ?"};
  const sql::Command commands[] = {{.statement = &update, .params = {"1"}},
                                   {.statement = &insert, .params = {"a", "2"}},
                                   {.statement = &select, .params = {"a"}},
                                   {.text = "UPDATE d"},
                                   {.statement = &update, .params = {"3"}}};
  const sql::Query query{.commands = {std::begin(commands), std::end(commands)}};
  const auto hexadecimal = [](const std::string& text) { return test::MysqlLock::hexadecimal(text); };
  const std::string executions =
      "START TRANSACTION; EXECUTE d0 USING 1; EXECUTE d1 USING X'61', 2; SELECT X'61'; UPDATE d; EXECUTE d0 USING 3; "
      "COMMIT";
  Prepared prepared;
  QueryText text = text_of(query, &prepared).value();
  EXPECT_EQ(text.text, "PREPARE d0 FROM X'" + hexadecimal("UPDATE b SET c = ?") + "'; PREPARE d1 FROM X'" +
                           hexadecimal("INSERT a VALUES (?, ?)") + "'; " + executions);
  EXPECT_EQ(text.prepares, (Prepared{&update, &insert}));
  EXPECT_EQ(text.before_commands(), 3U);
  EXPECT_EQ(text.statements(), 9U);
  prepared = {&update};
  EXPECT_TRUE(text_of(query, &prepared).value().text.starts_with("PREPARE d1 FROM"));
  prepared = text.prepares;
  EXPECT_EQ(text_of(query, &prepared).value().text, executions);
}

}  // namespace

}  // namespace dlock::mysql

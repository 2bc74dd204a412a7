// The first question of a connection, the conclusions from its answer, and the texts of queries.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "backends/mysql/client/preamble.hpp"
#include "backends/mysql/client/query_text.hpp"
#include "tests/support/mysql_locks.hpp"

namespace dlock::mysql {

namespace {

using namespace std::chrono_literals;
using Values = std::vector<std::pair<std::string, std::string>>;

sql::Rows rows_of(const Values& values) {
  sql::Rows rows;
  for (const auto& [name, value] : values) rows.rows.push_back({name, value});
  return rows;
}

Result<sql::ServerInfo> read(const Values& variables, const Values& status = {}, Pooler pooler = Pooler::detect,
                             const std::string& id = "7") {
  return read_answer({rows_of({{id, "1"}}), rows_of(variables), rows_of(status)},
                     {.version = 101119, .thread_id = 7, .endpoint = "h:3306"}, pooler);
}

TEST(MysqlPreamble, Answer_DescribesTheServer) {
  const auto server = read({{"read_only", "OFF"}, {"log_bin", "OFF"}, {"binlog_format", "STATEMENT"}});
  ASSERT_TRUE(server.ok());
  EXPECT_EQ(server.value().version, 101119);
  EXPECT_EQ(server.value().backend_pid, 7);
  EXPECT_EQ(server.value().endpoint, "h:3306");
  EXPECT_FALSE(server.value().pooled || server.value().many_writers);
  EXPECT_EQ(read({{"log_bin", "ON"}, {"binlog_format", "STATEMENT"}}).failure().code, errc::unsupported);
  EXPECT_TRUE(read({{"log_bin", "ON"}, {"binlog_format", "MIXED"}}).ok());
}

TEST(MysqlPreamble, ServerThatCannotBeWrittenTo_IsRefused) {
  for (const Values& variables : {Values{{"read_only", "ON"}},
                                  {{"super_read_only", "ON"}},
                                  {{"innodb_read_only", "1"}},
                                  {{"read_only", "NO_LOCK"}}}) {
    const auto server = read(variables);
    ASSERT_FALSE(server.ok()) << variables[0].first;
    EXPECT_EQ(server.failure().code, errc::unavailable);
    EXPECT_NE(server.failure().detail.find(variables[0].first), std::string::npos) << server.failure().detail;
  }
  const Values galera = {{"wsrep_on", "ON"}, {"wsrep_provider", "/usr/lib/libgalera_smm.so"}};
  EXPECT_EQ(read(galera, {{"wsrep_ready", "OFF"}}).failure().code, errc::unavailable);
  EXPECT_TRUE(read({{"wsrep_on", "OFF"}}, {{"wsrep_ready", "OFF"}}).ok());
}

// Shows: hole mysql-proxy, hole mysql-several-nodes
TEST(MysqlPreamble, Cluster_HasManyWriters) {
  const struct {
    Values variables;
    bool many;
  } rows[] = {
      {{{"wsrep_on", "ON"}, {"wsrep_provider", "/usr/lib/libgalera_smm.so"}}, true},
      {{{"wsrep_on", "ON"}, {"wsrep_provider", "none"}}, false},
      {{{"wsrep_on", "OFF"}, {"wsrep_provider", "/usr/lib/libgalera_smm.so"}}, false},
      {{{"group_replication_single_primary_mode", "OFF"}}, true},
      {{{"group_replication_single_primary_mode", "ON"}}, false},
  };
  for (const auto& [variables, many] : rows) {
    EXPECT_EQ(read(variables, {{"wsrep_ready", "ON"}}).value().many_writers, many) << variables[0].second;
  }
}

TEST(MysqlPreamble, NodeThatRetries_IsKnown) {
  Values variables = {{"wsrep_on", "ON"}, {"wsrep_provider", "/usr/lib/libgalera_smm.so"}};
  EXPECT_FALSE(read(variables, {{"wsrep_ready", "ON"}}).value().retries);
  variables.emplace_back("wsrep_retry_autocommit", "1");
  EXPECT_TRUE(read(variables, {{"wsrep_ready", "ON"}}).value().retries);
  variables.back().second = "0";
  EXPECT_FALSE(read(variables, {{"wsrep_ready", "ON"}}).value().retries);
  EXPECT_FALSE(read({{"wsrep_on", "OFF"}, {"wsrep_retry_autocommit", "1"}}).value().retries);
}

// Shows: hole mysql-proxy
TEST(MysqlPreamble, OtherConnectionId_IsAPooler) {
  EXPECT_TRUE(read({}, {}, Pooler::detect, "8").value().pooled);
  EXPECT_FALSE(read({}, {}, Pooler::session, "8").value().pooled);
  EXPECT_TRUE(read({}, {}, Pooler::transaction, "7").value().pooled);
}

TEST(MysqlPreamble, Nonsense_IsRefused) {
  EXPECT_EQ(read({}, {}, Pooler::detect, "me").failure().code, errc::protocol);
  EXPECT_EQ(read_answer({}, {}, Pooler::detect).failure().code, errc::protocol);
}

TEST(MysqlPreamble, Settings_DependOnPurposeAndServer) {
  const auto has = [](const sql::Purpose& purpose, int version, const std::string& words) {
    return settings_for(purpose, version).find(words) != std::string::npos;
  };
  EXPECT_TRUE(has({}, 101119, "wait_timeout = 60;"));
  EXPECT_TRUE(has({}, 101119, "innodb_lock_wait_timeout = 1,"));
  EXPECT_TRUE(has({}, 101119, "max_statement_time = 0"));
  EXPECT_TRUE(has({}, 80036, "max_execution_time = 0"));
  EXPECT_TRUE(has({.session_lease = 2100ms}, 80036, " wait_timeout = 3;"));
  EXPECT_TRUE(has({.session_lease = 1ns}, 80036, " wait_timeout = 1;"));
  EXPECT_TRUE(has({.lock_patience = 5100ms}, 80036, "innodb_lock_wait_timeout = 6, SESSION lock_wait_timeout = 6"));
}

// --- Queries ---------------------------------------------------------------------------------------------------------

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

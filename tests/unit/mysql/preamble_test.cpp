#include "backends/mysql/client/preamble.hpp"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

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

}  // namespace

}  // namespace dlock::mysql

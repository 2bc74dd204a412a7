#include "backends/mysql/client/preamble.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <map>

namespace dlock::mysql {

using std::chrono::nanoseconds;
using std::chrono::seconds;

namespace {

// Sessions send heartbeats much more often. What a dead client's session has, as the bells of its locks, ends with it.
constexpr seconds longest_silence{60};
// A server counts this many seconds at most.
constexpr seconds longest_timeout{31536000};

std::string in_seconds(nanoseconds time) {
  return std::to_string(std::clamp(std::chrono::ceil<seconds>(time), seconds(1), longest_timeout).count());
}

// Of SHOW: name and value in each row.
using Values = std::map<std::string, std::string>;

Values values_of(const sql::Rows& rows) {
  Values values;
  for (std::size_t i = 0; i < rows.size(); ++i) values[rows.text(i, 0)] = rows.text(i, 1);
  return values;
}

std::string value(const Values& values, const char* name) {
  const auto found = values.find(name);
  return found == values.end() ? std::string() : found->second;
}

// Servers have further words for "on" in some settings.
bool is_on(const Values& values, const char* name) {
  const std::string word = value(values, name);
  return !word.empty() && word != "OFF" && word != "0";
}

bool is_galera(const Values& variables) {
  const std::string provider = value(variables, "wsrep_provider");
  return is_on(variables, "wsrep_on") && !provider.empty() && provider != "none";
}

// GET_LOCK() and row locks are local to a node of Galera, and to a member of Group Replication.
bool has_many_writers(const Values& variables) {
  return is_galera(variables) || value(variables, "group_replication_single_primary_mode") == "OFF";
}

}  // namespace

std::string question() {
  // Poolers answer a query for the CONNECTION_ID() alone by themselves.
  return "SELECT CONNECTION_ID(), 1;"
         " SHOW VARIABLES WHERE Variable_name IN ('read_only', 'super_read_only', 'innodb_read_only', 'log_bin',"
         " 'binlog_format', 'wsrep_on', 'wsrep_provider', 'wsrep_retry_autocommit',"
         " 'group_replication_single_primary_mode');"
         " SHOW STATUS LIKE 'wsrep_ready'";
}

Result<sql::ServerInfo> read_answer(const sql::Results& results, const Login& login, Pooler pooler) {
  const auto id = results.size() == answers_to_question ? results[0].number(0, 0) : std::nullopt;
  if (!id) return Failure{errc::protocol, login.endpoint + ": the server did not identify itself"};
  const Values variables = values_of(results[1]);
  const Values status = values_of(results[2]);
  sql::ServerInfo server{.version = login.version,
                         .backend_pid = static_cast<int>(*id),
                         .encrypted = login.encrypted,
                         .many_writers = has_many_writers(variables),
                         .retries = is_galera(variables) && is_on(variables, "wsrep_retry_autocommit"),
                         .endpoint = login.endpoint};
  server.pooled =
      pooler == Pooler::transaction || (pooler == Pooler::detect && static_cast<unsigned long>(*id) != login.thread_id);
  const auto useless = [&](const std::string& why) { return Failure{errc::unavailable, login.endpoint + ": " + why}; };
  for (const char* const name : {"read_only", "super_read_only", "innodb_read_only"}) {
    if (!is_on(variables, name)) continue;
    return useless(std::string("the server is read-only (") + name + "); locks need the primary");
  }
  if (is_on(variables, "log_bin") && value(variables, "binlog_format") == "STATEMENT") {
    return Failure{errc::unsupported,
                   login.endpoint +
                       ": binlog_format=STATEMENT: InnoDB refuses changes at READ COMMITTED there, and locks "
                       "by name are unsafe; set ROW or MIXED"};
  }
  if (server.many_writers && value(status, "wsrep_ready") == "OFF") {
    return useless("this node of the cluster has no majority (wsrep_ready)");
  }
  return server;
}

std::string settings_for(const sql::Purpose& purpose, int version) {
  const std::string patience = in_seconds(purpose.lock_patience);
  const std::string silence =
      in_seconds(purpose.session_lease > nanoseconds(0) ? purpose.session_lease : nanoseconds(longest_silence));
  return "SET NAMES utf8mb4, SESSION sql_mode = 'STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION', SESSION autocommit = 1,"
         " SESSION time_zone = '+00:00', SESSION innodb_lock_wait_timeout = " +
         patience + ", SESSION lock_wait_timeout = " + patience + ", SESSION wait_timeout = " + silence +
         "; SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED, READ WRITE; SET SESSION " +
         (is_mariadb(version) ? "max_statement_time" : "max_execution_time") + " = 0";
}

}  // namespace dlock::mysql

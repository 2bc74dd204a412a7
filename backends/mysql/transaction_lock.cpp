// A lock inside the caller's transaction: on the caller's thread, over the caller's connection, and blocking, unlike
// the rest of the backend.
#include <dlock/mysql.hpp>

#include <mysql.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <dlock/clock.hpp>

#include "backends/mysql/client/handle.hpp"
#include "backends/mysql/client/preamble.hpp"
#include "backends/mysql/client/query_text.hpp"
#include "backends/mysql/errors.hpp"
#include "backends/mysql/options.hpp"
#include "backends/mysql/sql/session_statements.hpp"
#include "util/names.hpp"
#include "util/process.hpp"

namespace dlock::mysql {

namespace {

using std::chrono::seconds;
using Token = std::optional<FencingToken>;

constexpr std::int64_t longest_wait = 1'000'000'000;  // seconds, about the most that InnoDB counts
constexpr unsigned row_is_locked = 1205;

[[noreturn]] void refuse(const std::string& why) {
  throw Error(errc::invalid_argument, why);
}

bool in_transaction(const MYSQL& connection) {
  return (connection.server_status & SERVER_STATUS_IN_TRANS) != 0;
}

std::string holder_of(const TransactionLockOptions& options) {
  return options.holder.empty() ? util::host_name() + ":" + std::to_string(util::process_id()) : options.holder;
}

void check(const MYSQL* connection, std::string_view name, const TransactionLockOptions& options) {
  if (connection == nullptr) refuse("connection: is null");
  if (connection->status != MYSQL_STATUS_READY) refuse("connection: has results that were not read");
  // Without autocommit, the first statement begins a transaction.
  if (!in_transaction(*connection) && (connection->server_status & SERVER_STATUS_AUTOCOMMIT) != 0) {
    refuse("connection: has no open transaction, so that the lock would be released at once; BEGIN one first");
  }
  if (const auto problem = util::problem_with_name(name)) refuse(*problem);
  if (const auto problem = problem_with_schema(options.schema)) refuse("schema: " + *problem);
  if (const auto problem = util::problem_with_name(holder_of(options))) refuse("holder: " + *problem);
  if (options.wait < Duration()) refuse("wait: is negative");
}

// Statements run one after the other on the caller's connection.
class Caller {
 public:
  Caller(MYSQL& connection, std::string schema) : connection_(connection) { options_.schema = std::move(schema); }

  // The error of the server; 0: none.
  [[nodiscard]] unsigned run(const sql::Statement& statement, std::vector<sql::Parameter> params) {
    const auto text = text_of({.commands = {{.statement = &statement, .params = std::move(params)}}});
    if (!text.ok()) throw Error(text.failure());
    const std::string& query = text.value().text;
    return mysql_real_query(&connection_, query.data(), query.size()) == 0 ? 0 : mysql_errno(&connection_);
  }
  void run_or_throw(const sql::Statement& statement, std::vector<sql::Parameter> params) {
    if (run(statement, std::move(params)) != 0) fail();
  }
  [[noreturn]] void fail() const {
    const std::string endpoint =
        std::string(connection_.host == nullptr ? "" : connection_.host) + ":" + std::to_string(connection_.port);
    const unsigned error = mysql_errno(&connection_);
    Failure why = mysql::failure_of(endpoint, error, mysql_error(&connection_));
    if (!is_of_library(error) && !ends_session(error)) {
      why = MysqlDialect(options_).failure_of(
          {.problem = sql::Problem::refused, .failure = why, .server_code = std::to_string(error)});
    }
    if (why.code == errc::ambiguous) why.code = errc::unavailable;  // the transaction is gone with its session
    throw Error(why);
  }

 private:
  MYSQL& connection_;
  Options options_;
};

// nullopt: another owner holds it.
Token take(MYSQL* connection, std::string_view name, const TransactionLockOptions& options, bool waits) {
  check(connection, name, options);
  const ForUpdateStatements use = for_update_statements(options.schema);
  const auto clock = boottime_clock();
  const TimePoint end = saturating_add(clock->now(), options.wait.value());
  Caller caller(*connection, options.schema);
  // MySQL waits for at least a second.
  const bool waits_at_least_a_second = !is_mariadb(static_cast<int>(mysql_get_server_version(connection)));
  const auto left = std::chrono::floor<seconds>(end - clock->now()).count();
  const std::int64_t patience =
      std::clamp<std::int64_t>(waits ? left : 0, waits_at_least_a_second ? 1 : 0, longest_wait);
  const bool was_open = in_transaction(*connection);
  caller.run_or_throw(use.limit_wait, {std::to_string(patience)});
  const unsigned error = caller.run(use.lock_in_transaction, {std::string(name), holder_of(options)});
  if (error != 0 && error != row_is_locked) {
    try {
      caller.fail();
    } catch (const Error&) {
      (void)caller.run(use.restore_wait, {});
      throw;
    }
  }
  const std::uint64_t token = mysql_insert_id(connection);
  caller.run_or_throw(use.restore_wait, {});
  if (error == 0) return FencingToken(token);
  if (was_open && !in_transaction(*connection)) {
    throw Error(errc::unavailable, "lock " + util::quoted(name) +
                                       " is held, and the server has rolled the transaction back "
                                       "(innodb_rollback_on_timeout)");
  }
  return std::nullopt;
}

}  // namespace

Token try_lock_in_transaction(st_mysql* connection, std::string_view name, const TransactionLockOptions& options) {
  return take(connection, name, options, false);
}

FencingToken lock_in_transaction(st_mysql* connection, std::string_view name, const TransactionLockOptions& options) {
  const Token token = take(connection, name, options, true);
  if (!token) throw Error(errc::timed_out, "lock " + util::quoted(name) + " is held by another owner");
  return *token;
}

}  // namespace dlock::mysql

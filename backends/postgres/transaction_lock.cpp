// A lock inside the caller's transaction: on the caller's thread, over the caller's connection, and blocking, unlike
// the rest of the backend.
#include <dlock/postgres.hpp>

#include <libpq-fe.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <dlock/clock.hpp>

#include "backends/postgres/libpq/libpq_handle.hpp"
#include "backends/postgres/libpq/libpq_results.hpp"
#include "backends/postgres/sql/connect_failure.hpp"
#include "backends/postgres/sql/identifier.hpp"
#include "backends/postgres/sql/lock_key.hpp"
#include "backends/postgres/sql/sqlstate.hpp"
#include "backends/postgres/sql/statements.hpp"
#include "util/names.hpp"
#include "util/process.hpp"

namespace dlock::postgres {

namespace {

using std::chrono::milliseconds;
using Kind = TransactionLockOptions::Kind;
using Token = std::optional<FencingToken>;

// The lock_timeout that means no limit.
constexpr const char* for_ever = "0";
// How long a try waits for another client that inserts the row just now. Mostly that takes a moment; but it may be the
// transaction of another caller, which keeps the lock.
constexpr const char* insertion_patience_ms = "200";
constexpr int most_rounds = 3;

// --- How long --------------------------------------------------------------------------------------------------------

class Patience {
 public:
  explicit Patience(Duration wait)
      : clock_(boottime_clock()), end_(saturating_add(clock_->now(), wait.value())), unlimited_(wait == forever) {}

  [[nodiscard]] bool unlimited() const noexcept { return unlimited_; }
  [[nodiscard]] bool over() const { return clock_->now() >= end_; }
  // The remaining time as a timeout of the server; at least a millisecond, because zero means no limit.
  [[nodiscard]] std::string timeout() const {
    if (unlimited_) return for_ever;
    const auto left = std::chrono::ceil<milliseconds>(end_ - clock_->now()).count();
    return std::to_string(std::clamp<std::int64_t>(left, 1, std::numeric_limits<std::int32_t>::max()));
  }

 private:
  std::shared_ptr<Clock> clock_;
  TimePoint end_;
  bool unlimited_;
};

// --- The connection -------------------------------------------------------------------------------------------------

// Statements run one after the other on the caller's connection.
class Caller {
 public:
  Caller(PGconn* connection, std::string schema) : connection_(connection), dialect_(std::move(schema)) {}

  // Throws Error, 55P03 as errc::timed_out, and 57014 when the patience ends.
  Rows run(const std::string& sql, const std::vector<std::string>& params = {}, const Patience* patience = nullptr) {
    std::vector<const char*> values;
    values.reserve(params.size());
    for (const std::string& param : params) values.push_back(param.c_str());
    const PgResult result(PQexecParams(connection_, sql.c_str(), static_cast<int>(values.size()), nullptr,
                                       values.data(), nullptr, nullptr, 0));
    const ExecStatusType status = PQresultStatus(result.get());
    if (status == PGRES_TUPLES_OK || status == PGRES_COMMAND_OK) return to_rows(*result);
    const char* const sqlstate = PQresultErrorField(result.get(), PG_DIAG_SQLSTATE);
    if (sqlstate == nullptr) {  // libpq's own words
      throw Error(errc::unavailable, endpoint() + ": " + in_one_line(PQerrorMessage(connection_)));
    }
    Outcome outcome{.problem = Problem::refused, .server_code = sqlstate};
    outcome.failure = server_failure(endpoint(), *result);
    Failure why = dialect_.failure_of(outcome);
    const bool impatient = patience != nullptr && dialect_.is_end_of_patience(outcome) && patience->over();
    if (outcome.server_code == "55P03" || impatient) why.code = errc::timed_out;
    // The transaction is gone with its session.
    if (why.code == errc::ambiguous) why.code = errc::unavailable;
    throw Error(why);
  }

  // As run(), with two more parameters: the timeouts that end the statement when the patience ends.
  Rows run_within(const Patience& patience, const std::string& sql, std::vector<std::string> params) {
    static const Statement limit = limit_of_wait();
    std::string before;
    if (!patience.unlimited()) before = run(limit.sql, {patience.timeout()}).text(0, 0);
    params.push_back(patience.timeout());
    params.push_back(before);
    return run(sql, params, &patience);
  }

  // As run(), but a failure is rolled back, and the transaction stays usable. False: 55P03.
  bool run_in_savepoint(const std::string& sql, const std::vector<std::string>& params) {
    (void)run("SAVEPOINT dlock");
    try {
      (void)run(sql, params);
    } catch (const Error& e) {
      if (e.code() != errc::timed_out) throw;
      (void)run("ROLLBACK TO SAVEPOINT dlock");
      (void)run("RELEASE SAVEPOINT dlock");
      return false;
    }
    (void)run("RELEASE SAVEPOINT dlock");
    return true;
  }

 private:
  [[nodiscard]] std::string endpoint() const {
    const auto text = [](const char* value) { return std::string(value == nullptr ? "" : value); };
    return text(PQhost(connection_)) + ":" + text(PQport(connection_)) + "/" + text(PQdb(connection_));
  }

  PGconn* connection_;
  const PostgresDialect dialect_;
};

// --- What is refused -------------------------------------------------------------------------------------------------

[[noreturn]] void refuse(const std::string& why) {
  throw Error(errc::invalid_argument, why);
}

void check_connection(const PGconn* connection) {
  if (connection == nullptr) refuse("connection: is null");
  if (PQstatus(connection) != CONNECTION_OK) {
    throw Error(errc::unavailable, "connection: " + in_one_line(PQerrorMessage(connection)));
  }
  if (PQpipelineStatus(connection) != PQ_PIPELINE_OFF) refuse("connection: is in pipeline mode");
  switch (PQtransactionStatus(connection)) {
    case PQTRANS_INTRANS:
      return;
    case PQTRANS_IDLE:
      refuse("connection: has no open transaction, so that the lock would be released at once; BEGIN one first");
    case PQTRANS_INERROR:
      refuse("connection: its transaction has failed; ROLLBACK first");
    case PQTRANS_ACTIVE:
      refuse("connection: a command is under way");
    case PQTRANS_UNKNOWN:
      break;
  }
  throw Error(errc::unavailable, "connection: is broken");
}

void check_text(const PGconn* connection, const std::optional<std::string>& problem, std::string_view text,
                const std::string& what) {
  if (problem) refuse(*problem);
  const char* const encoding = PQparameterStatus(connection, "client_encoding");
  const bool ascii = std::all_of(text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < 0x80; });
  // The server would read another text, and take another lock.
  if (!ascii && (encoding == nullptr || std::string_view(encoding) != "UTF8")) {
    refuse("connection: its client_encoding is " + std::string(encoding == nullptr ? "unknown" : encoding) + ", but " +
           what + " " + util::quoted(text) + " needs UTF8");
  }
}

std::string holder_of(const TransactionLockOptions& options) {
  return options.holder.empty() ? util::host_name() + ":" + std::to_string(util::process_id()) : options.holder;
}

void check(const PGconn* connection, std::string_view name, const TransactionLockOptions& options) {
  check_connection(connection);
  check_text(connection, util::problem_with_name(name), name, "lock name");
  if (const auto problem = problem_with_identifier(options.schema)) refuse("schema: " + *problem);
  const std::string holder = holder_of(options);
  auto problem = util::problem_with_name(holder);
  if (problem) problem = "holder: " + *problem;
  check_text(connection, problem, holder, "holder");
  if (options.wait < Duration()) refuse("wait: is negative");
}

Token token_of(const Rows& rows) {
  if (rows.empty() || rows.is_null(0, 0)) return std::nullopt;
  const auto token = rows.number(0, 0);
  if (!token || *token <= 0) throw Error(errc::protocol, "the token is not a positive number");
  return FencingToken(static_cast<std::uint64_t>(*token));
}

// --- Taking ----------------------------------------------------------------------------------------------------------

// A lock of that name. Without patience: a try.
struct Wanted {
  std::string name;
  std::string holder;
  Options options;  // schema and key
  const Patience* patience;
};

// The caller's transaction inserts a missing row. Until it ends, no other client can insert the row, as
// strategy=for-update does before it locks a row; so the insertion excludes others, too. A second statement locks the
// row, because it sees rows that were committed meanwhile.
Token take_row(Caller& caller, const Wanted& wanted) {
  const auto& [name, holder, options, patience] = wanted;
  const ForUpdateStatements use = for_update_statements(options.schema, Durability::sync);
  for (int round = 0; round < most_rounds; ++round) {
    if (patience != nullptr) {
      const Rows rows = caller.run_within(*patience, use.lock_in_transaction.sql, {name, holder});
      if (const Token token = token_of(rows)) return token;
      (void)caller.run(use.ensure_in_transaction.sql, {name, patience->timeout()});
    } else {
      const Rows rows = caller.run(use.try_in_transaction.sql, {name, holder});
      const Token token = token_of(rows);
      const bool there = rows.flag(0, 1);
      if (token || there || !caller.run_in_savepoint(use.ensure_in_transaction.sql, {name, insertion_patience_ms})) {
        return token;
      }
    }
  }
  if (patience == nullptr) return std::nullopt;
  throw Error(errc::protocol, "another client keeps removing the row of lock " + util::quoted(name));
}

Token take_key(Caller& caller, const Wanted& wanted) {
  const auto& [name, holder, options, patience] = wanted;
  const LockKey key = lock_key(options, name);
  const AdvisoryStatements use = advisory_statements(options.schema, Durability::sync, key.space);
  const std::vector<std::string> params = {key.parameter, token_row(options, name), holder};
  return token_of(patience == nullptr ? caller.run(use.try_in_transaction.sql, params)
                                      : caller.run_within(*patience, use.lock_in_transaction.sql, params));
}

Token take(PGconn* connection, std::string_view name, const TransactionLockOptions& options, const Patience* patience) {
  check(connection, name, options);
  Wanted wanted{.name = std::string(name), .holder = holder_of(options), .options = {}, .patience = patience};
  wanted.options.schema = options.schema;
  Caller caller(connection, options.schema);
  if (options.kind == Kind::row) return take_row(caller, wanted);
  const auto scheme = parse_key_scheme(options.key);
  if (!scheme) refuse("key must be " + std::string(key_schemes).append(", not ") + util::quoted(options.key));
  wanted.options.key = *scheme;
  return take_key(caller, wanted);
}

}  // namespace

Token try_lock_in_transaction(pg_conn* connection, std::string_view name, const TransactionLockOptions& options) {
  return take(connection, name, options, nullptr);
}

FencingToken lock_in_transaction(pg_conn* connection, std::string_view name, const TransactionLockOptions& options) {
  const Patience patience(options.wait);
  const Token token = take(connection, name, options, options.wait == Duration() ? nullptr : &patience);
  if (!token) throw Error(errc::timed_out, "lock " + util::quoted(name) + " is already held");
  return *token;
}

}  // namespace dlock::postgres

#include "backends/mysql/errors.hpp"

#include <algorithm>
#include <array>
#include <system_error>

#include "backends/mysql/sql/layout.hpp"
#include "util/number.hpp"

namespace dlock::mysql {

using sql::Execution;
using sql::Meaning;
using sql::Outcome;
using sql::Problem;
using sql::Remedy;

namespace {

struct Known {
  unsigned error;
  Meaning meaning;
};

constexpr Meaning busy = {Remedy::busy, Execution::no, errc::timed_out};
constexpr Meaning again = {Remedy::retry, Execution::no, errc::unavailable};
constexpr Meaning later = {Remedy::retry_later, Execution::no, errc::unavailable};
constexpr Meaning elsewhere = {Remedy::reconnect, Execution::no, errc::unavailable};
// The session ends during a query.
constexpr Meaning cut_off = {Remedy::reconnect, Execution::unknown, errc::ambiguous};
constexpr Meaning not_set_up = {Remedy::set_up, Execution::no, errc::invalid_argument};
constexpr Meaning denied = {Remedy::final, Execution::no, errc::access_denied};
constexpr Meaning wrong = {Remedy::final, Execution::no, errc::invalid_argument};
constexpr Meaning not_here = {Remedy::final, Execution::no, errc::unsupported};
constexpr Meaning nonsense = {Remedy::final, Execution::no, errc::protocol};
// An operator may remove the cause: a damaged table, an error of a trigger or an engine, numbers of later servers. It
// ends a try, but no wait.
constexpr Meaning unknown = later;

// MariaDB's and MySQL's numbers are the same below 1900; above, those of one mean nothing to the other.
constexpr std::array known = {
    Known{1205, busy},  // ER_LOCK_WAIT_TIMEOUT; of MariaDB's NOWAIT, too
    Known{3572, busy},  // ER_LOCK_NOWAIT

    Known{1213, again},  // ER_LOCK_DEADLOCK; a conflict with another node of Galera
    Known{3058, again},  // ER_USER_LOCK_DEADLOCK
    Known{3101, again},  // ER_TRANSACTION_ROLLBACK_DURING_COMMIT: the same of Group Replication
    Known{1020, again},  // ER_CHECKREAD: the row has changed since the snapshot
    Known{1412, again},  // ER_TABLE_DEF_CHANGED
    Known{1317, again},  // ER_QUERY_INTERRUPTED: KILL QUERY
    Known{1969, again},  // ER_STATEMENT_TIMEOUT: max_statement_time
    Known{3024, again},  // ER_QUERY_TIMEOUT: max_execution_time
    Known{1007, again},  // ER_DB_CREATE_EXISTS: another client was faster; the next three, too
    Known{1050, again},  // ER_TABLE_EXISTS_ERROR
    Known{1061, again},  // ER_DUP_KEYNAME
    Known{1062, again},  // ER_DUP_ENTRY

    Known{1040, later},  // ER_CON_COUNT_ERROR
    Known{1203, later},  // ER_TOO_MANY_USER_CONNECTIONS
    Known{1226, later},  // ER_USER_LIMIT_REACHED
    Known{1129, later},  // ER_HOST_IS_BLOCKED: until an administrator flushes the hosts
    Known{1021, later},  // ER_DISK_FULL
    Known{1037, later},  // ER_OUTOFMEMORY
    Known{1041, later},  // ER_OUT_OF_RESOURCES
    Known{1114, later},  // ER_RECORD_FILE_FULL
    Known{1135, later},  // ER_CANT_CREATE_THREAD
    Known{1206, later},  // ER_LOCK_TABLE_FULL

    Known{1290, elsewhere},  // ER_OPTION_PREVENTS_STATEMENT: --read-only, --super-read-only
    Known{1836, elsewhere},  // ER_READ_ONLY_MODE
    Known{1792, elsewhere},  // ER_CANT_EXECUTE_IN_READ_ONLY_TRANSACTION
    Known{1047, elsewhere},  // ER_UNKNOWN_COM_ERROR: a node of Galera outside of the primary component
    Known{1243, elsewhere},  // ER_UNKNOWN_STMT_HANDLER: a proxy has changed the session
    Known{2002, elsewhere},  // CR_CONNECTION_ERROR
    Known{2003, elsewhere},  // CR_CONN_HOST_ERROR
    Known{2005, elsewhere},  // CR_UNKNOWN_HOST

    Known{1053, cut_off},  // ER_SERVER_SHUTDOWN
    Known{1080, cut_off},  // ER_FORCING_CLOSE
    Known{1152, cut_off},  // ER_ABORTING_CONNECTION
    Known{1184, cut_off},  // ER_NEW_ABORTING_CONNECTION
    Known{1927, cut_off},  // ER_CONNECTION_KILLED
    Known{3169, cut_off},  // ER_SESSION_WAS_KILLED
    Known{4031, cut_off},  // ER_CLIENT_INTERACTION_TIMEOUT
    Known{2006, cut_off},  // CR_SERVER_GONE_ERROR
    Known{2013, cut_off},  // CR_SERVER_LOST
    Known{1180, cut_off},  // ER_ERROR_DURING_COMMIT: the engine may have committed

    Known{1049, not_set_up},  // ER_BAD_DB_ERROR
    Known{1146, not_set_up},  // ER_NO_SUCH_TABLE
    Known{1054, not_set_up},  // ER_BAD_FIELD_ERROR

    Known{1044, denied},  // ER_DBACCESS_DENIED_ERROR
    Known{1045, denied},  // ER_ACCESS_DENIED_ERROR
    Known{1130, denied},  // ER_HOST_NOT_PRIVILEGED
    Known{1095, denied},  // ER_KILL_DENIED_ERROR
    Known{1142, denied},  // ER_TABLEACCESS_DENIED_ERROR
    Known{1143, denied},  // ER_COLUMNACCESS_DENIED_ERROR
    Known{1227, denied},  // ER_SPECIFIC_ACCESS_DENIED_ERROR
    Known{1370, denied},  // ER_PROCACCESS_DENIED_ERROR
    Known{1251, denied},  // ER_NOT_SUPPORTED_AUTH_MODE
    Known{1698, denied},  // ER_ACCESS_DENIED_NO_PASSWORD_ERROR
    Known{1820, denied},  // ER_MUST_CHANGE_PASSWORD
    Known{1862, denied},  // ER_MUST_CHANGE_PASSWORD_LOGIN
    Known{3118, denied},  // ER_ACCOUNT_HAS_BEEN_LOCKED
    Known{4151, denied},  // the same of MariaDB
    Known{3159, denied},  // ER_SECURE_TRANSPORT_REQUIRED
    Known{2026, denied},  // CR_SSL_CONNECTION_ERROR
    Known{2059, denied},  // CR_AUTH_PLUGIN_CANNOT_LOAD
    Known{2061, denied},  // CR_AUTH_PLUGIN_ERR

    Known{1059, wrong},     // ER_TOO_LONG_IDENT: of GET_LOCK(), too
    Known{1366, wrong},     // ER_TRUNCATED_WRONG_VALUE_FOR_FIELD
    Known{1406, wrong},     // ER_DATA_TOO_LONG
    Known{1193, not_here},  // ER_UNKNOWN_SYSTEM_VARIABLE: a server that is too old
    Known{1235, not_here},  // ER_NOT_SUPPORTED_YET
    Known{1305, not_here},  // ER_SP_DOES_NOT_EXIST: no such function
    Known{1665, not_here},  // ER_BINLOG_STMT_MODE_AND_ROW_ENGINE

    // A statement fails in this way each time.
    Known{1048, nonsense},  // ER_BAD_NULL_ERROR
    Known{1064, nonsense},  // ER_PARSE_ERROR
    Known{1136, nonsense},  // ER_WRONG_VALUE_COUNT_ON_ROW
    Known{1153, nonsense},  // ER_NET_PACKET_TOO_LARGE
    Known{1264, nonsense},  // ER_WARN_DATA_OUT_OF_RANGE
};

constexpr std::array<unsigned, 3> full = {1040, 1203, 1226};
constexpr std::array<unsigned, 3> out_of_time = {1317, 1969, 3024};

template <class Range>
bool contains(const Range& range, unsigned error) noexcept {
  return std::find(range.begin(), range.end(), error) != range.end();
}

const Known* find(unsigned error) noexcept {
  const auto* const found =
      std::find_if(known.begin(), known.end(), [&](const Known& entry) { return entry.error == error; });
  return found == known.end() ? nullptr : found;
}

unsigned number_of(const Outcome& outcome) noexcept {
  return util::parse_number<unsigned>(outcome.server_code).value_or(0);
}

std::string with_number(unsigned error) {
  return " (error " + std::to_string(error) + ")";
}

std::string advice(unsigned error, const std::string& schema) {
  const std::string quoted = "`" + schema + "`";
  switch (error) {
    case 1044:
    case 1142:
    case 1143:
    case 1227:
    case 1370:
      return "; this user needs: " + needed_grants(schema);
    case 1049:
    case 1054:
    case 1146:
      return "; database " + quoted +
             " is missing or incomplete at this server: run \"dlock init\" with a user that may create it";
    case 1290:
    case 1792:
    case 1836:
      return "; this server is read-only, as replicas are, and locks need the primary";
    case 1047:
      return "; this node of the cluster has no majority";
    case 1665:
      return "; dlock needs binlog_format=ROW or MIXED";
    default:
      return {};
  }
}

}  // namespace

Meaning meaning_of(unsigned error) noexcept {
  const Known* const found = find(error);
  return found == nullptr ? unknown : found->meaning;
}

bool ends_session(unsigned error) noexcept {
  return error != 1180 && meaning_of(error).execution == Execution::unknown;
}

bool is_of_library(unsigned error) noexcept {
  return (error >= 2000 && error < 3000) || (error >= 5000 && error < 6000);
}

Failure failure_of(const std::string& endpoint, unsigned error, std::string_view text) {
  return {meaning_of(error).code, endpoint + ": " + std::string(text) + with_number(error)};
}

// The library has one number for a handshake that fails because of a certificate or a file, and because the connection
// broke. Its text names OpenSSL's reason or, with its number behind it, the system's.
Failure connect_failure(const std::string& endpoint, unsigned error, std::string_view text) {
  Failure why = failure_of(endpoint, error, text);
  const Remedy remedy = meaning_of(error).remedy;
  constexpr std::array<std::string_view, 5> ends = {"eof while reading", "(11)", "(32)", "(104)", "(110)"};
  const bool broke = std::any_of(ends.begin(), ends.end(), [&](std::string_view end) { return text.ends_with(end); });
  if ((remedy != Remedy::final && remedy != Remedy::set_up) || (error == 2026 && broke)) why.code = errc::unavailable;
  // "Can't create TCP/IP socket (24)" has no more than the number.
  if (error >= 2002 && error <= 2004 && text.ends_with(')')) {
    const std::string_view number = text.substr(text.rfind('(') + 1);
    const auto of_system = util::parse_number<int>(number.substr(0, number.size() - 1));
    if (of_system) why.detail += ": " + std::generic_category().message(*of_system);
  }
  return why;
}

Meaning MysqlDialect::meaning_of(const Outcome& outcome) const noexcept {
  if (outcome.problem == Problem::refused) return mysql::meaning_of(number_of(outcome));
  if (outcome.problem == Problem::unknown_outcome) return cut_off;
  if (outcome.failure.code == errc::unavailable) return elsewhere;
  for (const errc code :
       {errc::access_denied, errc::invalid_argument, errc::unsupported, errc::closed, errc::ambiguous}) {
    if (outcome.failure.code == code) return {Remedy::final, Execution::no, code};
  }
  return nonsense;
}

Failure MysqlDialect::failure_of(const Outcome& outcome) const {
  if (outcome.problem != Problem::refused) return outcome.failure;
  const unsigned error = number_of(outcome);
  return {mysql::meaning_of(error).code, outcome.failure.detail + advice(error, options_.schema)};
}

bool MysqlDialect::may_be_ones_fault(const Outcome& outcome) const noexcept {
  if (outcome.problem != Problem::refused) return false;
  const Known* const found = find(number_of(outcome));
  if (found == nullptr) return true;
  const Meaning& meaning = found->meaning;
  const bool concerns_all = meaning.code == errc::access_denied || meaning.code == errc::unsupported;
  return meaning.remedy == Remedy::busy || (meaning.remedy == Remedy::final && !concerns_all);
}

bool MysqlDialect::is_end_of_patience(const Outcome& outcome) const noexcept {
  return outcome.problem == Problem::refused && contains(out_of_time, number_of(outcome));
}

// If a failure comes from several servers, only its text has the number.
bool MysqlDialect::is_about_a_full_server(const Failure& why) const noexcept {
  return why.code == errc::unavailable && std::any_of(full.begin(), full.end(), [&](unsigned error) {
           return why.detail.find(with_number(error)) != std::string::npos;
         });
}

std::optional<Failure> MysqlDialect::unfit_for_locks(const sql::ServerInfo& server) const {
  if (server.pooled) {
    return Failure{errc::unsupported,
                   server.endpoint +
                       ": a pooler shares the server's sessions among its clients, so all of them would "
                       "hold the lock of one; connect to the server itself, or to a pooler that keeps a "
                       "session for each client (pooler=session), or use strategy=table"};
  }
  if (server.many_writers && !options_.single_writer) {
    return Failure{errc::unsupported,
                   server.endpoint +
                       ": this cluster has several writers and does not replicate the locks of sessions, so clients of "
                       "different servers would hold the same lock; let all clients use one server and say "
                       "single_writer=true, or use strategy=table"};
  }
  return std::nullopt;
}

}  // namespace dlock::mysql

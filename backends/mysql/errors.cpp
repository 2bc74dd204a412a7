#include "backends/mysql/errors.hpp"

#include <errmsg.h>
#include <mysqld_error.h>

#include <algorithm>
#include <array>
#include <initializer_list>
#include <system_error>

#include "backends/mysql/sql/layout.hpp"
#include "util/number.hpp"

namespace dlock::mysql {

using sql::Execution;
using sql::Meaning;
using sql::Outcome;
using sql::Problem;
using sql::Remedy;
using namespace sql::meanings;  // NOLINT(google-build-using-namespace)

namespace {

constexpr std::array<unsigned, 3> full = {ER_CON_COUNT_ERROR, ER_TOO_MANY_USER_CONNECTIONS, ER_USER_LIMIT_REACHED};
constexpr std::array<unsigned, 3> out_of_time = {ER_QUERY_INTERRUPTED, ER_STATEMENT_TIMEOUT, 3024};

// MariaDB's and MySQL's numbers are the same below 1900; above, those of one mean nothing to the other. Numbers
// without a name are MySQL's.
std::optional<Meaning> known_meaning(unsigned error) noexcept {
  const auto is = [error](std::initializer_list<unsigned> errors) { return std::ranges::count(errors, error) > 0; };
  if (is({ER_LOCK_WAIT_TIMEOUT, 3572 /* ER_LOCK_NOWAIT */})) return busy;
  if (is({ER_LOCK_DEADLOCK,  // or a conflict with another node of Galera
          ER_USER_LOCK_DEADLOCK,
          3101,          // ER_TRANSACTION_ROLLBACK_DURING_COMMIT: the same of Group Replication
          ER_CHECKREAD,  // the row has changed since the snapshot
          ER_TABLE_DEF_CHANGED, ER_QUERY_INTERRUPTED, ER_STATEMENT_TIMEOUT, 3024 /* ER_QUERY_TIMEOUT */}))
    return again;
  // Another client was faster.
  if (is({ER_DB_CREATE_EXISTS, ER_TABLE_EXISTS_ERROR, ER_DUP_KEYNAME, ER_DUP_ENTRY})) return again;
  if (is({ER_CON_COUNT_ERROR, ER_TOO_MANY_USER_CONNECTIONS, ER_USER_LIMIT_REACHED,
          ER_HOST_IS_BLOCKED,  // until an administrator flushes the hosts
          ER_DISK_FULL, ER_OUTOFMEMORY, ER_OUT_OF_RESOURCES, ER_RECORD_FILE_FULL, ER_CANT_CREATE_THREAD,
          ER_LOCK_TABLE_FULL}))
    return later;
  if (is({ER_OPTION_PREVENTS_STATEMENT,  // --read-only, --super-read-only
          ER_READ_ONLY_MODE, ER_CANT_EXECUTE_IN_READ_ONLY_TRANSACTION,
          ER_UNKNOWN_COM_ERROR,  // a node of Galera outside of the primary component
          CR_CONNECTION_ERROR, CR_CONN_HOST_ERROR, CR_UNKNOWN_HOST}))
    return elsewhere;
  if (is({ER_SERVER_SHUTDOWN, ER_FORCING_CLOSE, ER_ABORTING_CONNECTION, ER_NEW_ABORTING_CONNECTION,
          ER_CONNECTION_KILLED, 3169 /* ER_SESSION_WAS_KILLED */, 4031 /* ER_CLIENT_INTERACTION_TIMEOUT */,
          CR_SERVER_GONE_ERROR, CR_SERVER_LOST, ER_ERROR_DURING_COMMIT /* the engine may have committed */}))
    return cut_off;
  if (is({ER_BAD_DB_ERROR, ER_NO_SUCH_TABLE, ER_BAD_FIELD_ERROR})) return not_set_up;
  if (is({ER_DBACCESS_DENIED_ERROR, ER_ACCESS_DENIED_ERROR, ER_HOST_NOT_PRIVILEGED, ER_KILL_DENIED_ERROR,
          ER_TABLEACCESS_DENIED_ERROR, ER_COLUMNACCESS_DENIED_ERROR, ER_SPECIFIC_ACCESS_DENIED_ERROR,
          ER_PROCACCESS_DENIED_ERROR, ER_NOT_SUPPORTED_AUTH_MODE, ER_ACCESS_DENIED_NO_PASSWORD_ERROR,
          ER_MUST_CHANGE_PASSWORD, ER_MUST_CHANGE_PASSWORD_LOGIN, ER_ACCOUNT_HAS_BEEN_LOCKED, 3118 /* the same */,
          3159 /* ER_SECURE_TRANSPORT_REQUIRED */, CR_SSL_CONNECTION_ERROR, CR_AUTH_PLUGIN_CANNOT_LOAD,
          CR_AUTH_PLUGIN_ERR}))
    return denied;
  if (is({ER_TOO_LONG_IDENT /* of GET_LOCK(), too */, ER_TRUNCATED_WRONG_VALUE_FOR_FIELD, ER_DATA_TOO_LONG}))
    return wrong;
  if (is({ER_UNKNOWN_SYSTEM_VARIABLE,  // a server that is too old
          ER_NOT_SUPPORTED_YET,
          ER_SP_DOES_NOT_EXIST,  // no such function
          ER_BINLOG_STMT_MODE_AND_ROW_ENGINE}))
    return not_here;
  // A statement fails in this way each time.
  if (is({ER_BAD_NULL_ERROR, ER_PARSE_ERROR, ER_WRONG_VALUE_COUNT_ON_ROW, ER_NET_PACKET_TOO_LARGE,
          ER_WARN_DATA_OUT_OF_RANGE}))
    return nonsense;
  return std::nullopt;
}

unsigned number_of(std::string_view server_code) noexcept {
  return util::parse_number<unsigned>(server_code).value_or(0);
}

std::string with_number(unsigned error) {
  return " (error " + std::to_string(error) + ")";
}

}  // namespace

Meaning meaning_of(unsigned error) noexcept {
  return known_meaning(error).value_or(unknown);
}

bool ends_session(unsigned error) noexcept {
  return error != ER_ERROR_DURING_COMMIT && meaning_of(error).execution == Execution::unknown;
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
  if ((remedy != Remedy::final && remedy != Remedy::set_up) || (error == CR_SSL_CONNECTION_ERROR && broke))
    why.code = errc::unavailable;
  // "Can't create TCP/IP socket (24)" has no more than the number.
  if (error >= 2002 && error <= 2004 && text.ends_with(')')) {
    const std::string_view number = text.substr(text.rfind('(') + 1);
    const auto of_system = util::parse_number<int>(number.substr(0, number.size() - 1));
    if (of_system) why.detail += ": " + std::generic_category().message(*of_system);
  }
  return why;
}

std::optional<Meaning> MysqlDialect::find(std::string_view server_code) const noexcept {
  return known_meaning(number_of(server_code));
}

std::string MysqlDialect::advice(std::string_view server_code) const {
  switch (number_of(server_code)) {
    case ER_DBACCESS_DENIED_ERROR:
    case ER_TABLEACCESS_DENIED_ERROR:
    case ER_COLUMNACCESS_DENIED_ERROR:
    case ER_SPECIFIC_ACCESS_DENIED_ERROR:
    case ER_PROCACCESS_DENIED_ERROR:
      return "; this user needs: " + needed_grants(options_.schema);
    case ER_BAD_DB_ERROR:
    case ER_BAD_FIELD_ERROR:
    case ER_NO_SUCH_TABLE:
      return "; database `" + options_.schema +
             "` is missing or incomplete at this server: run \"dlock init\" with a user that may create it";
    case ER_OPTION_PREVENTS_STATEMENT:
    case ER_CANT_EXECUTE_IN_READ_ONLY_TRANSACTION:
    case ER_READ_ONLY_MODE:
      return "; this server is read-only, as replicas are, and locks need the primary";
    case ER_UNKNOWN_COM_ERROR:
      return "; this node of the cluster has no majority";
    case ER_BINLOG_STMT_MODE_AND_ROW_ENGINE:
      return "; dlock needs binlog_format=ROW or MIXED";
    default:
      return {};
  }
}

bool MysqlDialect::is_end_of_patience(const Outcome& outcome) const noexcept {
  return outcome.problem == Problem::refused && std::ranges::count(out_of_time, number_of(outcome.server_code)) > 0;
}

// If a failure comes from several servers, only its text has the number.
bool MysqlDialect::is_about_a_full_server(const Failure& why) const noexcept {
  return why.code == errc::unavailable && std::any_of(full.begin(), full.end(), [&](unsigned error) {
           return why.detail.find(with_number(error)) != std::string::npos;
         });
}

std::optional<Failure> MysqlDialect::unfit_for_locks(const sql::ServerInfo& server) const {
  if (auto why = Dialect::unfit_for_locks(server)) return why;
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

// The differences between database servers that sessions and locks depend on. No I/O.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include <dlock/error.hpp>

#include "backends/common/sql/connection.hpp"

namespace dlock::sql {

// The client's reaction to an error.
enum class Remedy {
  // Another client has the lock. Not an error.
  busy,
  // Rolled back, and may succeed if it is tried again within the deadline: a deadlock, a serialization failure, a
  // cancelled query, a table that another client has just created.
  retry,
  // The server lacks memory, disk or connections just now, or the error is unknown: try again later.
  retry_later,
  // This connection or this server is of no use: a standby, a shutdown, a pooler that has lost a prepared statement.
  // Connect anew and try again.
  reconnect,
  // dlock's tables are missing or incomplete. Trying again does not help until an administrator runs "dlock init".
  set_up,
  // Trying again does not help.
  final,
};

enum class Execution {
  no,       // rolled back, or never begun; but a lock of the session may have been taken
  unknown,  // it may have been committed
};

struct Meaning {
  Remedy remedy = Remedy::final;
  Execution execution = Execution::no;
  errc code = errc::protocol;
};

// Of the errors that services have in common.
namespace meanings {

inline constexpr Meaning busy = {Remedy::busy, Execution::no, errc::timed_out};
inline constexpr Meaning again = {Remedy::retry, Execution::no, errc::unavailable};
inline constexpr Meaning later = {Remedy::retry_later, Execution::no, errc::unavailable};
inline constexpr Meaning elsewhere = {Remedy::reconnect, Execution::no, errc::unavailable};
// The session ends during a query. A commit that waited for a standby has happened on the primary all the same.
inline constexpr Meaning cut_off = {Remedy::reconnect, Execution::unknown, errc::ambiguous};
inline constexpr Meaning not_set_up = {Remedy::set_up, Execution::no, errc::invalid_argument};
inline constexpr Meaning denied = {Remedy::final, Execution::no, errc::access_denied};
inline constexpr Meaning wrong = {Remedy::final, Execution::no, errc::invalid_argument};
inline constexpr Meaning not_here = {Remedy::final, Execution::no, errc::unsupported};
inline constexpr Meaning nonsense = {Remedy::final, Execution::no, errc::protocol};
// An operator may remove the cause: internal errors, damaged data, errors of triggers and extensions, codes of later
// servers. It ends a try, but no wait.
inline constexpr Meaning unknown = later;

}  // namespace meanings

class Dialect {
 public:
  Dialect() = default;
  Dialect(const Dialect&) = delete;
  Dialect& operator=(const Dialect&) = delete;
  virtual ~Dialect() = default;

  [[nodiscard]] virtual const char* service() const noexcept = 0;  // for messages: "PostgreSQL"
  // A statement that shows that the session exists, and keeps nothing.
  [[nodiscard]] virtual const char* heartbeat() const noexcept = 0;

  // Of an outcome with a problem. A query that was not sent or not answered is to be tried over another connection,
  // unless the client cannot connect for good.
  [[nodiscard]] Meaning meaning_of(const Outcome& outcome) const noexcept;
  // For the caller: the outcome's failure and advice. Never contains a password.
  [[nodiscard]] Failure failure_of(const Outcome& outcome) const;
  // One of several requests in the query may be the reason, and the others may succeed without it.
  [[nodiscard]] bool may_be_ones_fault(const Outcome& outcome) const noexcept;
  // A limit of time ended it, or another session cancelled it.
  [[nodiscard]] virtual bool is_end_of_patience(const Outcome& outcome) const noexcept = 0;
  // The transaction was rolled back because it notified clients and the queue of notifications is full.
  [[nodiscard]] virtual bool is_full_of_notifications(const Outcome& /*outcome*/) const noexcept { return false; }
  // Why a connection could not be made: the server has no connection left.
  [[nodiscard]] virtual bool is_about_a_full_server(const Failure& why) const noexcept = 0;
  // Why no lock can live in the server's sessions: a pooler lends them to several clients.
  [[nodiscard]] virtual std::optional<Failure> unfit_for_locks(const ServerInfo& server) const;

 private:
  // Of a refusal. nullopt: the code is unknown.
  [[nodiscard]] virtual std::optional<Meaning> find(std::string_view server_code) const noexcept = 0;
  // For the user, behind the server's words; with ';' in front.
  [[nodiscard]] virtual std::string advice(std::string_view server_code) const = 0;
};

// errc::unsupported. why: how dlock noticed that clients share the session.
[[nodiscard]] Failure needs_own_session(const ServerInfo& server, const std::string& why);

// The server ended the session instead of answering: the locks of the session are free, but not because of the query.
[[nodiscard]] inline bool is_end_of_session(const Outcome& outcome) noexcept {
  return outcome.problem == Problem::unknown_outcome && !outcome.server_code.empty();
}

}  // namespace dlock::sql

// The meaning of a SQLSTATE for a lock. Servers translate the message beside it, but never the code. No I/O.
#pragma once

#include <string>
#include <string_view>

#include <dlock/error.hpp>

#include "backends/common/sql/connection.hpp"

namespace dlock::postgres {

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
  no,       // rolled back, or never begun; but a session's advisory lock may have been taken
  unknown,  // it may have been committed
};

struct Meaning {
  Remedy remedy = Remedy::final;
  Execution execution = Execution::no;
  errc code = errc::protocol;
};

[[nodiscard]] Meaning meaning_of(std::string_view sqlstate) noexcept;
// For an outcome with a problem. A query that was not sent or not answered is to be tried over another connection,
// unless the client cannot connect for good.
[[nodiscard]] Meaning meaning_of(const Outcome& outcome) noexcept;

// For the caller: the outcome's failure and, for a missing right, the GRANT; for a missing schema, how to make it.
// Never contains a password.
[[nodiscard]] Failure failure_of(const Outcome& outcome, std::string_view schema);

// One of several requests in the query may be the reason, and the others may succeed without it.
[[nodiscard]] bool may_be_ones_fault(const Outcome& outcome) noexcept;

// A statement_timeout ended it, or another session cancelled it.
[[nodiscard]] bool is_end_of_patience(const Outcome& outcome) noexcept;

// The server ended the session instead of answering: the locks of the session are free, but not because of the query.
[[nodiscard]] bool is_end_of_session(const Outcome& outcome) noexcept;

// The queue of notifications is full, because a listening session reads none (in an open transaction). The server rolls
// back the whole transaction that notifies.
[[nodiscard]] bool is_full_of_notifications(const Outcome& outcome) noexcept;

}  // namespace dlock::postgres

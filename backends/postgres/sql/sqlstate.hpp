// What the five characters of SQLSTATE mean for a lock. The sentence beside them is translated, they are not. No I/O.
#pragma once

#include <string>
#include <string_view>

#include <dlock/error.hpp>

#include "backends/postgres/sql/connection.hpp"

namespace dlock::postgres {

// What to do about an error.
enum class Remedy {
  // Another client has the lock, and we would have had to wait (longer) for it. Not an error.
  busy,
  // Was rolled back and may succeed when it is tried again, within the deadline: a deadlock, a serialization failure, a
  // cancelled query, a table that another client has created just then.
  retry,
  // The server lacks something just now: memory, disk, connections; or it is unknown what is wrong with it. Try again,
  // but later.
  retry_later,
  // This connection, or this server, is of no use (any longer): a standby, a shutdown, a pooler that forgot what was
  // prepared. Set up another and try again.
  reconnect,
  // There are no tables of dlock's, or others than ours. Trying again does not help until an administrator runs "dlock
  // init".
  set_up,
  // Trying again does not help.
  final,
};

enum class Execution {
  no,       // rolled back, or never begun. What does not roll back, a session's advisory lock, may have been taken.
  unknown,  // the server does not say, or ended before it could: it may have been committed
};

struct Meaning {
  Remedy remedy = Remedy::final;
  Execution execution = Execution::no;
  errc code = errc::protocol;
};

[[nodiscard]] Meaning meaning_of(std::string_view sqlstate) noexcept;
// Of an answer that is a problem. What was not sent or not answered is to be tried over another connection, unless
// there is none for good.
[[nodiscard]] Meaning meaning_of(const Outcome& outcome) noexcept;

// For the caller: the connection's words and, for a missing permission, what to grant; for a missing schema, how to get
// one. Never contains a password.
[[nodiscard]] Failure failure_of(const Outcome& outcome, std::string_view schema);

// One of several requests in the query may be the reason, and the others succeed without it.
[[nodiscard]] bool may_be_ones_fault(const Outcome& outcome) noexcept;

// A statement_timeout ended it, or another session cancelled it.
[[nodiscard]] bool is_end_of_patience(const Outcome& outcome) noexcept;

// The server ended the session instead of answering: what the session held is free, and not by this query.
[[nodiscard]] bool is_end_of_session(const Outcome& outcome) noexcept;

// The queue of notifications is full, because a listening session takes none (in an open transaction). What
// notifies is rolled back as a whole.
[[nodiscard]] bool is_full_of_notifications(const Outcome& outcome) noexcept;

}  // namespace dlock::postgres

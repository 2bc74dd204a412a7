// The meaning of a SQLSTATE for a lock. Servers translate the message beside it, but never the code. No I/O.
#pragma once

#include <string>
#include <string_view>

#include <dlock/error.hpp>

#include "backends/postgres/sql/common.hpp"

namespace dlock::postgres {

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

// The queue of notifications is full, because a listening session reads none (in an open transaction). The server rolls
// back the whole transaction that notifies.
[[nodiscard]] bool is_full_of_notifications(const Outcome& outcome) noexcept;

}  // namespace dlock::postgres

// Reasons why locks cannot live in a session. No I/O.
#pragma once

#include <optional>

#include <dlock/error.hpp>

#include "backends/postgres/sql/common.hpp"

namespace dlock::postgres {

// A pooler shares the session.
[[nodiscard]] std::optional<Failure> unfit_for_locks(const ServerInfo& server);

// An answer came from another process of the server than that of the session, although dlock found no pooler, or the
// user said that it keeps a session for each client.
[[nodiscard]] Failure other_session(const ServerInfo& server);

// The server granted an advisory lock that it does not have: its functions exist for compatibility, and lock nothing.
[[nodiscard]] Failure locks_nothing(const ServerInfo& server);

}  // namespace dlock::postgres

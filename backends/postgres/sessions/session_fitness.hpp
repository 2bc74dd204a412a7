// Whether a connection is good enough for locks that live in sessions. No I/O.
#pragma once

#include <optional>

#include <dlock/error.hpp>

#include "backends/postgres/sql/connection.hpp"

namespace dlock::postgres {

// Why no lock can live there, ever: the session is shared by a pooler.
[[nodiscard]] std::optional<Failure> unfit_for_locks(const ServerInfo& server);

// An answer came from another process of the server than the one that the session was made with, although nothing
// looked like a pooler, or the user said that it would keep a session for each client.
[[nodiscard]] Failure other_session(const ServerInfo& server);

// It granted an advisory lock that it does not have: the functions are there so that programs run, and lock nothing.
[[nodiscard]] Failure locks_nothing(const ServerInfo& server);

}  // namespace dlock::postgres

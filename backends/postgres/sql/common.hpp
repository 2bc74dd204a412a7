// PostgreSQL's code uses the names of the code that it shares with other databases.
#pragma once

#include "backends/common/sql/connection.hpp"
#include "backends/common/sql/dialect.hpp"

namespace dlock::postgres {

using namespace sql;  // NOLINT(google-build-using-namespace)

// Takes no snapshot. A SELECT in an open transaction keeps its snapshot until the next statement, and CREATE INDEX
// CONCURRENTLY, which may well run under the lock, would wait for that.
inline constexpr const char* heartbeat_sql = "SHOW transaction_isolation";

}  // namespace dlock::postgres

// strategy=advisory and strategy=for-update on a DedicatedSession. Options outlive the dialects.
#pragma once

#include <memory>

#include "backends/common/sql/dialect.hpp"
#include "backends/common/sql/session_dialect.hpp"
#include "backends/postgres/options.hpp"

namespace dlock::postgres {

[[nodiscard]] std::unique_ptr<SessionDialect> advisory_dialect(const Options& options);
[[nodiscard]] std::unique_ptr<SessionDialect> for_update_dialect(const Options& options);

// Why no lock can live in the session: an answer came from another process of the server than the session's, although
// dlock found no pooler, or the user said that it keeps a session for each client.
[[nodiscard]] Failure other_session(const ServerInfo& server);

}  // namespace dlock::postgres

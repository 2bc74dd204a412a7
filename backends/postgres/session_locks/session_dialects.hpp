// strategy=advisory and strategy=for-update on a DedicatedSession. Options outlive the dialects.
#pragma once

#include <memory>

#include "backends/common/sql/session_dialect.hpp"
#include "backends/postgres/options.hpp"

namespace dlock::postgres {

[[nodiscard]] std::unique_ptr<SessionDialect> advisory_dialect(const Options& options);
[[nodiscard]] std::unique_ptr<SessionDialect> for_update_dialect(const Options& options);

}  // namespace dlock::postgres

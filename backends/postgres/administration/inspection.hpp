// Questions about locks, breaking one, and forgetting names.
#pragma once

#include <memory>

#include "backends/common/sql/inspection.hpp"
#include "backends/postgres/options.hpp"

namespace dlock::postgres {

// The options outlive it. Where there are no tables, only advisory locks of other programs can be held. To end
// sessions, the role must be a member of the holder's role, or of pg_signal_backend.
[[nodiscard]] std::unique_ptr<sql::Inspection> inspection(Commands& commands, const Options& options);

}  // namespace dlock::postgres

// Questions about locks, and their administration, for all strategies.
#pragma once

#include <memory>

#include "backends/common/sql/inspection.hpp"
#include "backends/mysql/options.hpp"

namespace dlock::mysql {

// The options outlive it. To end sessions of other users, a user needs the right CONNECTION ADMIN.
[[nodiscard]] std::unique_ptr<sql::Inspection> inspection(sql::Commands& commands, const Options& options);

}  // namespace dlock::mysql

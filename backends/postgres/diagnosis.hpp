// Looks for what endangers locks in a PostgreSQL server: its role, its settings, the rights of our role, its tables.
#pragma once

#include <vector>

#include <dlock/backend.hpp>

#include "backends/postgres/commands.hpp"

namespace dlock::postgres {

// Answers within the response timeout. Changes nothing. In tasks only.
void diagnose(Commands& commands, Backend::Handler<std::vector<Finding>> done);

}  // namespace dlock::postgres

// dlock run: a command under a lock.
#pragma once

#include "cli/arguments.hpp"
#include "cli/inherited.hpp"

namespace dlock::cli {

// Returns dlock's exit status. Throws Error, UsageError, std::system_error.
[[nodiscard]] int run_command(const Arguments& arguments, Inherited& inherited);

}  // namespace dlock::cli

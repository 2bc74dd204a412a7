// A command under a lock, under several, or while leading. Both return dlock's exit status and throw Error, UsageError,
// std::system_error.
#pragma once

#include "cli/arguments.hpp"
#include "cli/inherited.hpp"

namespace dlock::cli {

// dlock run.
[[nodiscard]] int run_command(const Arguments& arguments, Inherited& inherited);
// dlock elect: while this one leads; again and again, unless Arguments::once.
[[nodiscard]] int elect(const Arguments& arguments, Inherited& inherited);

}  // namespace dlock::cli

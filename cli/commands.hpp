// The commands that do not run another one. Each returns dlock's exit status and throws Error, UsageError,
// OutputError, std::system_error.
#pragma once

#include <string>
#include <vector>

#include "cli/arguments.hpp"
#include "cli/inherited.hpp"

namespace dlock::cli {

[[nodiscard]] int hold(const Arguments& arguments, Inherited& inherited);
[[nodiscard]] int leader(const Arguments& arguments, Inherited& inherited);
[[nodiscard]] int status(const Arguments& arguments);
[[nodiscard]] int list(const Arguments& arguments);
[[nodiscard]] int break_lock(const Arguments& arguments);
[[nodiscard]] int forget(const Arguments& arguments);
[[nodiscard]] int doctor(const Arguments& arguments);
[[nodiscard]] int init(const Arguments& arguments);
[[nodiscard]] int show_backends(const Arguments& arguments);
// "complete -- WORD...", for the shells; see completion.hpp.
[[nodiscard]] int complete(const std::vector<std::string>& words, const Inherited& inherited);

}  // namespace dlock::cli

// The kernel's error numbers as failures of dlock.
#pragma once

#include <string>
#include <string_view>

#include <dlock/error.hpp>

namespace dlock::file {

// "<what> <path>: <text of the error>", with the code by what the caller should do about it.
[[nodiscard]] Failure system_failure(std::string_view what, std::string_view path, int error);

}  // namespace dlock::file

// The rules that a history was checked by, kept with it.
#pragma once

#include <filesystem>

#include "torture/checker/checker.hpp"

namespace dlock::torture {

// Throws std::system_error.
void save(const Rules& rules, const std::filesystem::path& file);
// Throws std::runtime_error naming the file.
[[nodiscard]] Rules load_rules(const std::filesystem::path& file);

}  // namespace dlock::torture

// The rules by which a history was checked, stored with it.
#pragma once

#include <filesystem>

#include "torture/checker/checker.hpp"

namespace dlock::torture {

// Throws std::system_error.
void save(const Rules& rules, const std::filesystem::path& file);
// Throws std::runtime_error with the file's name.
[[nodiscard]] Rules load_rules(const std::filesystem::path& file);

}  // namespace dlock::torture

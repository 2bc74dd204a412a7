// Filling in the parts of a statement that cannot be parameters. No I/O.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <dlock/lock_kind.hpp>

namespace dlock::sql {

// Texts that replace a {word}.
using Fillings = std::vector<std::pair<std::string_view, std::string>>;
// The texts of further words.
using FurtherFilling = std::optional<std::string> (*)(std::string_view word);

// Replaces every {word}, and makes one blank of every run of blanks and line ends. Fillings are not scanned for words.
// A word without a filling and a brace without its pair are mistakes in the program: std::logic_error.
[[nodiscard]] std::string fill(std::string_view text, const Fillings& fillings, FurtherFilling further);

// table: that of plain locks. For elections, "lease" becomes "lease_elect".
[[nodiscard]] std::string table_of(std::string_view table, LockKind kind);

}  // namespace dlock::sql

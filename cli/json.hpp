// JSON output.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

namespace dlock::cli {

using Json = nlohmann::ordered_json;

// One line. Text that is not UTF-8 has its stray bytes replaced.
[[nodiscard]] std::string json_line(const Json& value);

// What was taken: name and token of one lock, null if it was not got; else names and tokens.
[[nodiscard]] Json names_and_tokens(const std::vector<std::string>& names, const std::vector<std::uint64_t>& tokens);

}  // namespace dlock::cli

// JSON output.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

namespace dlock::cli {

using Json = nlohmann::ordered_json;

// In one line. Stray bytes that are not UTF-8 are replaced.
[[nodiscard]] std::string json_line(const Json& value);

// One lock: its name and token, null if it was not acquired. Several: names and tokens.
[[nodiscard]] Json names_and_tokens(const std::vector<std::string>& names, const std::vector<std::uint64_t>& tokens);

}  // namespace dlock::cli

// JSON output.
#pragma once

#include <dlock/info.hpp>

#include <string>

#include <nlohmann/json_fwd.hpp>

namespace dlock::cli {

using Json = nlohmann::ordered_json;

// One line. Text that is not UTF-8 has its stray bytes replaced.
[[nodiscard]] std::string json_line(const Json& value);
// The same on standard output.
void print_json(const Json& value);

[[nodiscard]] Json to_json(const LockInfo& info);
[[nodiscard]] Json to_json(const Finding& finding);

}  // namespace dlock::cli

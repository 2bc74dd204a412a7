// JSON output.
#pragma once

#include <dlock/info.hpp>

#include <nlohmann/json_fwd.hpp>

namespace dlock::cli {

using Json = nlohmann::ordered_json;

// One line on standard output. Text that is not UTF-8 has its stray bytes replaced.
void print_json(const Json& value);

[[nodiscard]] Json to_json(const LockInfo& info);
[[nodiscard]] Json to_json(const Finding& finding);

}  // namespace dlock::cli

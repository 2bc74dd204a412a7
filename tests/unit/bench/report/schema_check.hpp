// As much of JSON Schema as the schema of reports uses.
#pragma once

#include <string>

#include <nlohmann/json.hpp>

namespace dlock::bench {

// What is wrong with the value, or nothing. A keyword that this does not know is wrong, too.
[[nodiscard]] std::string schema_violation(const nlohmann::json& value, const nlohmann::json& schema);

}  // namespace dlock::bench

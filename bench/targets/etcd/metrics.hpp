// What a server says of itself for monitoring, in Prometheus' text format.
#pragma once

#include <optional>
#include <string_view>

namespace dlock::bench {

// The sum over all lines of a metric: `name{labels} value`. nullopt: there is none, or a value is no number.
[[nodiscard]] std::optional<double> metric_sum(std::string_view text, std::string_view name);

}  // namespace dlock::bench

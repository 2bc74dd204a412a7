// A report such as a full run over all services would make, from formulas instead of measurements.
#pragma once

#include "bench/report/result.hpp"

namespace dlock::bench {

[[nodiscard]] Report synthetic_report();

// Without the measurements of that scenario.
[[nodiscard]] Report without_scenario(Report report, std::string_view scenario);

}  // namespace dlock::bench

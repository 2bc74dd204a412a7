// The performance budget: what dlock's figures must reach, most of them as ratios to the floor by hand in the same run.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "bench/report/result.hpp"

namespace dlock::bench {

struct Budget {
  Better better;          // lower: at most that much; higher: at least
  double limit;           // a ratio, or the figure itself
  std::string unit = {};  // of the figure; empty for a ratio
};

// Absent: there is none for that figure of measurements of this kind.
[[nodiscard]] std::optional<Budget> budget_of(const Report& report, const Measurement& measurement,
                                              std::string_view figure);

}  // namespace dlock::bench

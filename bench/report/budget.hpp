// The performance budget: what dlock's figures must reach, as ratios to the floor in the same run.
#pragma once

#include <optional>

#include "bench/report/result.hpp"

namespace dlock::bench {

struct Budget {
  std::string figure;  // name of figures.hpp
  Better better;       // lower: at most that ratio; higher: at least
  double ratio;
};

// Absent: there is none for measurements of this kind.
[[nodiscard]] std::optional<Budget> budget_of(const Report& report, const Measurement& measurement);

}  // namespace dlock::bench

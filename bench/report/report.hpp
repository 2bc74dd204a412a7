// The forms of a report.
#pragma once

#include <string>
#include <string_view>

#include "bench/report/result.hpp"

namespace dlock::bench {

// The JSON file; docs/bench-report.schema.json describes it.
[[nodiscard]] std::string to_json(const Report& report);
// Throws std::runtime_error, naming the invalid part.
[[nodiscard]] Report from_json(std::string_view text);

// One self-contained page.
[[nodiscard]] std::string to_html(const Report& report);

// The tables for a terminal: one line per service, then the locks with several holders, and the ratios to each floor,
// those to locks by hand with the performance budget.
[[nodiscard]] std::string to_text(const Report& report);

// Changes larger than the noise: a figure counts as changed if the ranges of its repeats do not overlap, and the
// medians differ by more than five percent.
struct Comparison {
  std::string text;
  bool slower = false;  // something got worse
};
[[nodiscard]] Comparison compare(const Report& before, const Report& after);

}  // namespace dlock::bench

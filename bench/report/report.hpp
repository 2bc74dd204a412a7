// What is made of a report.
#pragma once

#include <string>
#include <string_view>

#include "bench/report/result.hpp"

namespace dlock::bench {

// The JSON file; docs/bench-report.schema.json describes it.
[[nodiscard]] std::string to_json(const Report& report);
// Throws std::runtime_error, naming the part that is wrong.
[[nodiscard]] Report from_json(std::string_view text);

// One self-contained page.
[[nodiscard]] std::string to_html(const Report& report);

// The table for a terminal: a line a service, below it one of the locks that several hold at the same time, and the
// ratios to each floor, those to by hand with the performance budget.
[[nodiscard]] std::string to_text(const Report& report);

// What changed beyond the noise: a figure counts as changed when the ranges of its repeats do not overlap and the
// medians are further apart than five percent.
struct Comparison {
  std::string text;
  bool slower = false;  // something got worse
};
[[nodiscard]] Comparison compare(const Report& before, const Report& after);

}  // namespace dlock::bench

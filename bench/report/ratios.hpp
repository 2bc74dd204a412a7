// dlock's figures as ratios to a floor, beside the budget.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "bench/report/budget.hpp"
#include "bench/report/result.hpp"

namespace dlock::bench {

struct Ratio {
  double value;
  std::string unit = {};  // not empty: a figure of dlock's alone
  std::optional<Budget> budget = {};

  [[nodiscard]] bool missed() const noexcept;
};

// A line for each service that has the floor, a column for each kind of measurement.
struct Ratios {
  struct Row {
    std::string service;
    std::vector<std::optional<Ratio>> cells;
  };
  std::vector<std::string> columns;  // "latency", "8 callers"
  std::vector<Row> rows;

  [[nodiscard]] bool any_missed() const noexcept;
};

// Latency, and throughput for each number of callers. By hand also that of asynchronous calls, where so many callers by
// hand were measured, with the processor time of a pair of them.
[[nodiscard]] Ratios ratios_of(const Report& report, Who floor);

// "1.34", "13.3 µs"
[[nodiscard]] std::string ratio_text(const Ratio& ratio);
// "<= 1.35", ">= 1.50", "<= 7.00 µs"
[[nodiscard]] std::string budget_text(const Budget& budget);

}  // namespace dlock::bench

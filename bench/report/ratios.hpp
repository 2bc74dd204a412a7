// dlock's figures as ratios to the floors, beside the budget.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "bench/report/budget.hpp"
#include "bench/report/result.hpp"

namespace dlock::bench {

struct Ratio {
  double value;
  std::optional<Budget> budget;

  [[nodiscard]] bool missed() const noexcept;
};

// A line for each service that has a floor, a column for each kind of measurement.
struct Ratios {
  struct Row {
    std::string service;
    std::vector<std::optional<Ratio>> cells;
  };
  std::vector<std::string> columns;  // "latency p50", "8 callers"
  std::vector<Row> rows;

  [[nodiscard]] bool any_missed() const noexcept;
};

// Latency, and throughput for each number of callers.
[[nodiscard]] Ratios ratios_of(const Report& report);

// "<= 1.35", ">= 1.50"
[[nodiscard]] std::string budget_text(const Budget& budget);

}  // namespace dlock::bench

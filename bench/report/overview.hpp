// The figures that one decides by, a line a service.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "bench/report/result.hpp"

namespace dlock::bench {

// A number of callers (or waiters) with a figure.
struct Counted {
  double count;
  double value;
};

struct OverviewRow {
  std::string service;
  std::optional<double> p50;             // us, of acquire and release
  std::optional<double> p99;             // us
  std::optional<Counted> throughput;     // 1/s, with the most callers that the service took
  std::optional<Counted> hand_off_few;   // us, p50
  std::optional<Counted> hand_off_many;  // us, p50
  std::optional<Counted> operations;     // a hand-off, with the most waiters
  std::optional<double> fairness;        // with the most waiters
  std::optional<double> recovery;        // us
  std::optional<double> lease_ms;        // of the holder that was killed; 0: none
};

struct Overview {
  double callers = 0;  // the most that any service took; 0: throughput was not measured
  double few = 0;      // waiters
  double many = 0;
  std::vector<OverviewRow> rows;
};

[[nodiscard]] Overview overview_of(const Report& report);

// The figure; where the number of callers or waiters is not that of the column, it is said.
[[nodiscard]] std::string counted_text(const std::optional<Counted>& figure, std::string_view unit, double usual);

}  // namespace dlock::bench

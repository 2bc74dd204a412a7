// All services in one picture, a line each.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "bench/report/page/groups.hpp"
#include "bench/report/page/markup.hpp"
#include "bench/report/page/row_chart.hpp"
#include "bench/report/result.hpp"

namespace dlock::bench {

// What is shown of a measurement, but for the name of the service. Absent: it has no such figure.
using RowOf = std::function<std::optional<Row>(const Measurement& dlock, const Measurement* by_hand)>;

struct RowPanel {
  std::string id;
  std::string heading;
  const char* scenario;
  std::optional<Parameters> parameters = {};  // absent: each service has one measurement
  std::string x_title;
  const char* unit = "us";
  RowOf row;
};

// Bars are on a linear axis, all else is on a logarithmic one. Nothing where nothing was measured.
[[nodiscard]] Markup draw(const RowPanel& panel, const Report& report, const std::vector<Group>& groups);

// A bar for that figure.
[[nodiscard]] RowOf bar_of(const char* figure, const char* unit);
// From p50 to p99, with a stroke for the p50 by hand.
[[nodiscard]] RowOf spread();

}  // namespace dlock::bench

// All services in one picture, a line each.
#pragma once

#include <string>
#include <vector>

#include "bench/report/page/groups.hpp"
#include "bench/report/page/markup.hpp"
#include "bench/report/page/row_chart.hpp"
#include "bench/report/result.hpp"

namespace dlock::bench {

// A picture with a heading; a high one stands beside two others.
[[nodiscard]] Markup panel_of(std::string_view heading, const RowChart& chart);

struct RowPanel {
  std::string id;
  std::string heading;
  const char* scenario;  // of which each service has one measurement
  const char* figure;
  const char* unit;
  std::string x_title;
};

// A bar for the figure. Nothing where nothing was measured.
[[nodiscard]] Markup draw(const RowPanel& panel, const Report& report, const std::vector<Group>& groups);

struct SpreadPanel {
  std::string id;
  std::string heading;
  const char* scenario;  // of which each service has one measurement
  std::string x_title;
};

// From p50 to p99 on a logarithmic axis, with a stroke for the p50 by hand. Nothing where nothing was measured.
[[nodiscard]] Markup draw(const SpreadPanel& panel, const Report& report, const std::vector<Group>& groups);

}  // namespace dlock::bench

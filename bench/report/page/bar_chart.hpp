// Bars in groups: a group for each service, a line for each number of callers, dlock above the lock by hand.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "bench/report/page/axis.hpp"
#include "bench/report/page/markup.hpp"

namespace dlock::bench {

struct Bar {
  std::string label;
  double value;
  std::string text;  // the value, in words
  std::optional<double> floor;
};

struct BarGroup {
  std::string label;
  std::size_t series;
  std::vector<Bar> bars;
};

struct BarChart {
  std::string id;  // unique in the page
  std::string title;
  std::string description;
  Axis x;
  std::vector<BarGroup> groups;
};

[[nodiscard]] Markup draw(const BarChart& chart);

}  // namespace dlock::bench

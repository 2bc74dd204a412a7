// A line for each service, below its name.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "bench/report/page/axis.hpp"
#include "bench/report/page/markup.hpp"

namespace dlock::bench {

struct Row {
  std::string label = {};
  std::string text;        // the value
  std::string words = {};  // for those who do not see the picture; empty: the value says it all
  std::size_t colour = 0;
  bool muted = false;                                   // is there for comparison only
  std::optional<double> bar = {};                       // from the start of the axis
  std::optional<std::pair<double, double>> range = {};  // a thin line
  std::vector<double> dots = {};
  std::vector<double> strokes = {};  // short upright lines
};

struct RowChart {
  std::string id;  // unique in the page
  std::string title;
  std::string description;
  Axis x;
  std::vector<Row> rows;
};

[[nodiscard]] Markup draw(const RowChart& chart);

}  // namespace dlock::bench

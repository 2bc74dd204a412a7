// Lines over two axes.
#pragma once

#include <string>
#include <vector>

#include "bench/report/page/axis.hpp"
#include "bench/report/page/markup.hpp"
#include "bench/report/page/svg.hpp"

namespace dlock::bench {

struct Line {
  std::size_t series;  // its mark
  std::size_t colour;
  bool dashed = false;
  std::vector<Place> points;  // values, not places in the picture
  std::vector<Place> marked;  // the mark is drawn at these
};

struct LineChart {
  std::string id;  // unique in the page
  std::string title;
  std::string description;
  Axis x;
  Axis y;
  std::vector<Line> lines;
  Height height = Height::one_line;
};

[[nodiscard]] Markup draw(const LineChart& chart);

// What the lines of a series look like, and dashed lines whatever their series.
[[nodiscard]] Markup draw_key(std::size_t series, std::size_t colour);
[[nodiscard]] Markup draw_dashed_key();

}  // namespace dlock::bench

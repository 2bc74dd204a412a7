#include "bench/report/page/row_chart.hpp"

#include <algorithm>

#include "bench/report/page/svg.hpp"

namespace dlock::bench {

namespace {

constexpr double width = 340;
constexpr double left = 8;
constexpr double right = 326;
constexpr double top = 6;
constexpr double label_height = 16;
constexpr double row_height = 15;
constexpr double axis_height = 40;

double x_of(const Axis& axis, double value) {
  return left + axis.share(value) * (right - left);
}

// The middle of the row.
void draw_row(Svg& svg, const Axis& axis, const Row& row, double y) {
  svg.begin_colour(row.colour);
  if (row.bar) {
    const double length = std::max(x_of(axis, *row.bar) - left, 1.0);
    svg.rectangle({left, y - 5}, length, 10, row.muted ? "muted bar" : "bar");
  }
  if (row.range) svg.line({x_of(axis, row.range->first), y}, {x_of(axis, row.range->second), y}, "line");
  for (const double each : row.strokes) {
    svg.line({x_of(axis, each), y - 6}, {x_of(axis, each), y + 6}, "stroke");
  }
  for (const double each : row.dots) svg.mark({x_of(axis, each), y}, 0);
  svg.end_colour();
}

}  // namespace

Markup draw(const RowChart& chart) {
  const double bottom = top + (label_height + row_height) * static_cast<double>(chart.rows.size());
  Svg svg(width, bottom + axis_height);
  for (const Tick& tick : chart.x.ticks()) {
    const double x = left + tick.share * (right - left);
    svg.line({x, top}, {x, bottom}, "grid");
    const Anchor anchor = tick.share < 0.04 ? Anchor::start : tick.share > 0.94 ? Anchor::end : Anchor::middle;
    svg.text({x, bottom + 15}, anchor, tick.label);
  }
  double y = top;
  for (const Row& row : chart.rows) {
    svg.text({left, y + 12}, Anchor::start, row.label, row.muted ? "muted label" : "label");
    svg.text({right, y + 12}, Anchor::end, row.text, "value");
    y += label_height;
    draw_row(svg, chart.x, row, y + row_height / 2 - 1);
    y += row_height;
  }
  svg.text({right, bottom + 32}, Anchor::end, chart.x.title(), "name");
  return svg.finish(chart.id, chart.title, chart.description);
}

}  // namespace dlock::bench

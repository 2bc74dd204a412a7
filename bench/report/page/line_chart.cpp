#include "bench/report/page/line_chart.hpp"

namespace dlock::bench {

namespace {

// As wide as a column of the page, so that letters have the size that they were given.
constexpr double width = 340;
constexpr double left = 56;
constexpr double right = 318;
constexpr double top = 24;
constexpr double below = 40;  // for the axis

double bottom_of(const LineChart& chart) {
  return chart.height == Height::one_line ? 196 : 440;
}

double x_of(const Axis& axis, double value) {
  return left + axis.share(value) * (right - left);
}

double y_of(const LineChart& chart, double value) {
  return bottom_of(chart) - chart.y.share(value) * (bottom_of(chart) - top);
}

void draw_axes(Svg& svg, const LineChart& chart) {
  const double bottom = bottom_of(chart);
  for (const Tick& tick : chart.y.ticks()) {
    const double y = bottom - tick.share * (bottom - top);
    svg.line({left, y}, {right, y}, "grid");
    svg.text({left - 6, y + 4}, Anchor::end, tick.label);
  }
  for (const Tick& tick : chart.x.ticks()) {
    const double x = left + tick.share * (right - left);
    svg.line({x, top}, {x, bottom}, "grid");
    svg.text({x, bottom + 16}, Anchor::middle, tick.label);
  }
  svg.line({left, bottom}, {right, bottom}, "axis");
  svg.text({4, 12}, Anchor::start, chart.y.title(), "name");
  svg.text({right, bottom + 33}, Anchor::end, chart.x.title(), "name");
}

}  // namespace

Markup draw(const LineChart& chart) {
  Svg svg(width, bottom_of(chart) + below);
  draw_axes(svg, chart);
  for (const Line& line : chart.lines) {
    std::vector<Place> way;
    way.reserve(line.points.size());
    for (const Place& each : line.points) way.push_back({x_of(chart.x, each.x), y_of(chart, each.y)});
    svg.begin_colour(line.colour);
    svg.path(way, line.dashed ? "line dashed" : "line");
    for (const Place& each : line.marked) svg.mark({x_of(chart.x, each.x), y_of(chart, each.y)}, line.series);
    svg.end_colour();
  }
  return svg.finish(chart.id, chart.title, chart.description);
}

Markup draw_key(std::size_t series, std::size_t colour) {
  Svg svg(30, 12);
  svg.begin_colour(colour);
  svg.path({{1, 6}, {29, 6}}, "line");
  svg.mark({15, 6}, series);
  svg.end_colour();
  return svg.finish_hidden();
}

Markup draw_dashed_key() {
  Svg svg(30, 12);
  svg.path({{1, 6}, {29, 6}}, "line dashed");
  return svg.finish_hidden();
}

}  // namespace dlock::bench

#include "bench/report/page/bar_chart.hpp"

#include <algorithm>

#include "bench/report/page/svg.hpp"

namespace dlock::bench {

namespace {

constexpr double width = 340;
constexpr double left = 58;
constexpr double right = 276;  // what follows is for the value of the longest bar
constexpr double top = 4;
constexpr double label_height = 20;
constexpr double row_height = 21;
constexpr double axis_height = 40;
constexpr double bar_height = 9;
constexpr double floor_height = 5;

double height_of(const BarGroup& group) {
  return label_height + row_height * static_cast<double>(group.bars.size());
}

double length_of(const Axis& axis, double value) {
  return std::max(axis.share(value) * (right - left), 1.0);
}

// The value stands beside the bar that it belongs to, though the floor may be longer.
void draw_bar(Svg& svg, const Axis& axis, const Bar& bar, double y) {
  const double length = length_of(axis, bar.value);
  svg.text({left - 6, y + 10}, Anchor::end, bar.label);
  svg.rectangle({left, y + 1}, length, bar_height, "bar");
  if (bar.floor) svg.rectangle({left, y + 3 + bar_height}, length_of(axis, *bar.floor), floor_height, "hollow");
  svg.text({left + length + 5, y + 10}, Anchor::start, bar.text, "value");
}

}  // namespace

Markup draw(const BarChart& chart) {
  double bottom = top;
  for (const BarGroup& each : chart.groups) bottom += height_of(each);
  Svg svg(width, bottom + axis_height);
  for (const Tick& tick : chart.x.ticks()) {
    const double x = left + tick.share * (right - left);
    svg.line({x, top}, {x, bottom}, "grid");
    svg.text({x, bottom + 15}, Anchor::middle, tick.label);
  }
  double y = top;
  for (const BarGroup& group : chart.groups) {
    svg.text({left, y + 15}, Anchor::start, group.label, "label");
    y += label_height;
    svg.begin_series(group.series);
    for (const Bar& bar : group.bars) {
      draw_bar(svg, chart.x, bar, y);
      y += row_height;
    }
    svg.end_series();
  }
  svg.text({width - 4, bottom + 32}, Anchor::end, chart.x.title(), "name");
  return svg.finish(chart.id, chart.title, chart.description);
}

}  // namespace dlock::bench

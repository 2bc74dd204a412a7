#include "bench/report/page/line_panels.hpp"

#include <optional>

#include <fmt/core.h>

#include "bench/report/page/line_chart.hpp"
#include "bench/report/page/section.hpp"
#include "bench/report/selection.hpp"
#include "bench/report/units.hpp"

namespace dlock::bench {

namespace {

std::vector<Place> places_of(const LinePanels& panels, const Report& report, const Member& member, const Curve& curve) {
  std::vector<Place> places;
  const auto points = points_of(report, panels.scenario, member.label, curve.who, panels.parameter, panels.others);
  for (const Point& each : points) {
    if (const auto y = median_of(each.measurement, curve.figure)) places.push_back({each.x, *y});
  }
  return places;
}

std::string words_for(const LinePanels& panels, const std::string& name, const std::vector<Place>& places) {
  std::string text = name + ":";
  for (const Place& each : places) {
    text += fmt::format(" {} at {},", quantity_text(each.y, panels.unit), round_text(each.x, ""));
  }
  text.back() = '.';
  return text + " ";
}

Markup draw_group(const LinePanels& panels, const Report& report, const Group& group, const Axis& x, const Axis& y,
                  Height height = Height::one_line) {
  LineChart chart{.id = panels.id + "-" + group.id,
                  .title = panels.title + ", " + group.backend,
                  .description = {},
                  .x = x,
                  .y = y,
                  .lines = {},
                  .height = height};
  Legend legend;
  for (const Member& member : group.members) {
    for (const Curve& curve : panels.curves) {
      std::vector<Place> places = places_of(panels, report, member, curve);
      if (places.empty()) continue;
      chart.description += words_for(panels, member.name + (curve.dashed ? ", " : "") + curve.name, places);
      chart.lines.push_back(
          {.series = member.series, .colour = member.colour, .dashed = curve.dashed, .points = places, .marked = {}});
      if (!curve.dashed) chart.lines.back().marked = std::move(places);
      if (curve.dashed) {
        legend.dashed = curve.name;
      } else {
        legend.series.push_back(member);
      }
    }
  }
  if (chart.lines.empty()) return {};
  return panel(group.backend + panels.heading, draw(chart), legend, height);
}

}  // namespace

Markup draw(const LinePanels& panels, const Report& report, const std::vector<Group>& groups) {
  std::vector<double> all_x;
  std::vector<double> all_y;
  const Group all = together(groups);
  for (const Member& member : all.members) {
    for (const Curve& curve : panels.curves) {
      for (const Place& each : places_of(panels, report, member, curve)) {
        all_x.push_back(each.x);
        all_y.push_back(each.y);
      }
    }
  }
  if (panels.spacing == Spacing::linear) all_x.push_back(0);
  const Axis x = Axis::of(all_x, panels.x_title);
  const Axis y = panels.spacing == Spacing::linear ? Axis::from_zero(all_y, panels.y_title, panels.unit)
                                                   : Axis::logarithmic(all_y, panels.y_title, panels.unit);
  Markup result;
  if (panels.together && groups.size() > 1) {
    LinePanels without_floors = panels;
    std::erase_if(without_floors.curves, [](const Curve& each) { return each.dashed; });
    result += draw_group(without_floors, report, all, x, y, Height::two_lines);
  }
  for (const Group& each : groups) result += draw_group(panels, report, each, x, y);
  return result;
}

}  // namespace dlock::bench

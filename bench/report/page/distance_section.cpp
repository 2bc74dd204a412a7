// Over a simulated network.
#include <fmt/core.h>

#include "bench/report/figures.hpp"
#include "bench/report/page/line_panels.hpp"
#include "bench/report/page/section.hpp"
#include "bench/report/selection.hpp"
#include "bench/report/units.hpp"

namespace dlock::bench {

namespace {

// Where the distance of 0 was not measured once more, it is what latency and contention are without it.
Report with_origin(const Report& whole, double waiters) {
  Report report;
  report.services = whole.services;
  for (const Measurement& each : whole.measurements) {
    if (each.scenario == scenario::distance) report.measurements.push_back(each);
  }
  const auto add_origin = [&](const Measurement& measurement, const Parameters& others) {
    Parameters parameters = others;
    parameters[parameter::round_trip_ms] = 0;
    const bool far =
        !points_of(report, scenario::distance, measurement.service, measurement.who, parameter::round_trip_ms, others)
             .empty();
    const bool near = report.find(scenario::distance, measurement.service, measurement.who, parameters) != nullptr;
    if (!far || near) return;
    Measurement origin = measurement;
    origin.scenario = scenario::distance;
    origin.parameters = parameters;
    report.measurements.push_back(std::move(origin));
  };
  const Parameters crowd{{parameter::waiters, waiters}};
  for (const Measurement& each : whole.measurements) {
    if (each.scenario == scenario::latency && each.parameters.empty()) add_origin(each, {});
    if (each.scenario == scenario::contention && each.parameters == crowd) add_origin(each, crowd);
  }
  return report;
}

Markup latency(const Report& report, const std::vector<Group>& groups) {
  return draw(LinePanels{.id = "distance-latency",
                         .title = "Latency against round trip",
                         .heading = ": acquire and release",
                         .scenario = scenario::distance,
                         .parameter = parameter::round_trip_ms,
                         .others = {},
                         .curves = {{.figure = figure::p50},
                                    {.figure = figure::p50, .who = Who::by_hand, .dashed = true, .name = "by hand"}},
                         .x_title = "round trip, ms",
                         .y_title = "acquire and release, p50",
                         .unit = "us",
                         .spacing = Spacing::linear},
              report, groups);
}

Markup hand_off(const Report& report, const std::vector<Group>& groups, double waiters) {
  return draw(LinePanels{.id = "distance-hand-off",
                         .title = "Hand-off against round trip",
                         .heading = ": hand-off",
                         .scenario = scenario::distance,
                         .parameter = parameter::round_trip_ms,
                         .others = {{parameter::waiters, waiters}},
                         .curves = {{.figure = figure::p50}},
                         .x_title = "round trip, ms",
                         .y_title = fmt::format("hand-off, p50, {}", count_text(waiters, "waiter")),
                         .unit = "us",
                         .spacing = Spacing::linear},
              report, groups);
}

// How much a longer way adds, in round trips; what happens in the service does not count.
Markup trips_cell(const std::vector<Point>& points) {
  const auto near = median_of(fewest_of(points), figure::p50);
  const auto far = median_of(most_of(points), figure::p50);
  if (!near || !far || points.back().x <= points.front().x) return Markup(not_measured);
  return markup("{:.1f}", (*far - *near) / 1000 / (points.back().x - points.front().x));
}

Markup numbers(const Report& report, const std::vector<Group>& groups, double waiters) {
  const std::vector<double> trips = values_of(report, scenario::distance, parameter::round_trip_ms);
  std::vector<std::string> head = {"service", "what", "round trips"};
  for (const double each : trips) head.push_back("p50 at " + round_text(each, "") + " ms");
  HtmlTable table(std::move(head));
  const auto add = [&](const Member& member, const char* what, Who who, const Parameters& others) {
    const auto points = points_of(report, scenario::distance, member.label, who, parameter::round_trip_ms, others);
    if (points.empty()) return;
    std::vector<Markup> cells = {markup("{}", what), trips_cell(points)};
    for (const double each : trips) {
      Parameters parameters = others;
      parameters[parameter::round_trip_ms] = each;
      cells.push_back(figure_cell(report.find(scenario::distance, member.label, who, parameters), figure::p50));
    }
    table.add(member.label, std::move(cells));
  };
  for (const Member& member : together(groups).members) {
    add(member, "acquire and release", Who::dlock, {});
    add(member, "the same by hand", Who::by_hand, {});
    if (waiters > 0) add(member, "hand-off", Who::dlock, {{parameter::waiters, waiters}});
  }
  return table.scrolling("Distance");
}

}  // namespace

Section distance_section(const Report& whole) {
  const std::vector<Group> groups = groups_of(whole);
  const std::vector<double> waiters = values_of(whole, scenario::distance, parameter::waiters);
  const double most = waiters.empty() ? 0 : waiters.back();
  const Report report = with_origin(whole, most);
  Markup charts = latency(report, groups);
  if (most > 0) charts += hand_off(report, groups, most);
  return {.id = "distance",
          .scenario = scenario::distance,
          .title = "The service is far away: round trips",
          .shows =
              "What becomes of latency and hand-off when requests and answers take longer, through a proxy that "
              "delays them: on one machine nothing shows how often a client and its service talk. The steeper a "
              "line, the more round trips an operation takes; the table has their number. dlock has marks, what is "
              "by hand, a hand-written client of the same service, is dashed. Pictures of the same figure have the "
              "same axes.",
          .charts = std::move(charts),
          .numbers = numbers(report, groups, most)};
}

}  // namespace dlock::bench

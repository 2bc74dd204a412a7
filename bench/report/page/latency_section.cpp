// Acquire and release of a free lock.
#include <cmath>

#include <fmt/core.h>

#include "bench/report/figures.hpp"
#include "bench/report/page/line_chart.hpp"
#include "bench/report/page/row_panel.hpp"
#include "bench/report/page/section.hpp"
#include "bench/report/selection.hpp"
#include "bench/report/units.hpp"

namespace dlock::bench {

namespace {

std::string words_for(const Report& report, const Member& member) {
  const Measurement* dlock = latency_of(report, member.label, Who::dlock);
  std::string text = fmt::format("{}: p50 {}, p99 {}", member.label, quantity_text(median_of(dlock, figure::p50), "us"),
                                 quantity_text(median_of(dlock, figure::p99), "us"));
  if (const auto by_hand = median_of(latency_of(report, member.label, Who::by_hand), figure::p50)) {
    text += ", by hand p50 " + quantity_text(*by_hand, "us");
  }
  return text + ". ";
}

Line line_of(const Measurement& measurement, const Member& member) {
  Line line{.series = member.series,
            .colour = member.colour,
            .dashed = measurement.who == Who::by_hand,
            .points = {},
            .marked = {}};
  double marked = 0;
  for (const CdfPoint& each : measurement.cdf) {
    if (!std::isfinite(each.microseconds) || each.share > Axis::most_share()) continue;
    line.points.push_back({each.microseconds, each.share});
    for (const double share : {0.5, 0.9, 0.99, 0.999}) {
      if (line.dashed || marked >= share || each.share < share) continue;
      line.marked.push_back(line.points.back());
      marked = share;
    }
  }
  return line;
}

Markup distribution(const Report& report, const Group& group) {
  std::vector<double> values;
  std::vector<Line> lines;
  Legend legend;
  std::string description;
  for (const Member& member : group.members) {
    for (const Who who : {Who::dlock, Who::by_hand}) {
      const Measurement* measurement = latency_of(report, member.label, who);
      if (measurement == nullptr || measurement->cdf.empty()) continue;
      lines.push_back(line_of(*measurement, member));
      for (const Place& each : lines.back().points) values.push_back(each.x);
      if (who == Who::dlock) {
        legend.series.push_back(member);
        description += words_for(report, member);
      } else {
        legend.dashed = to_string(who);
      }
    }
  }
  if (lines.empty()) return {};
  return panel(group.backend,
               draw(LineChart{.id = "latency-" + group.id,
                              .title = "Distribution of latency, " + group.backend,
                              .description = description,
                              .x = Axis::logarithmic(values, "acquire and release", "us"),
                              .y = Axis::of_shares("share that took no longer"),
                              .lines = std::move(lines)}),
               legend);
}

Markup numbers(const Report& report, const std::vector<Group>& groups) {
  HtmlTable table({"service", "p50", "p90", "p99", "p99.9", "max", "context switches", "by hand p50", "ratio",
                   "same requests p50"});
  for (const Member& member : together(groups).members) {
    const Measurement* dlock = latency_of(report, member.label, Who::dlock);
    if (dlock == nullptr) continue;
    table.add(member.label, {figure_cell(dlock, figure::p50), figure_cell(dlock, figure::p90),
                             figure_cell(dlock, figure::p99), figure_cell(dlock, figure::p999),
                             figure_cell(dlock, figure::longest), figure_cell(dlock, figure::context_switches),
                             figure_cell(latency_of(report, member.label, Who::by_hand), figure::p50),
                             ratio_cell(report, *dlock, figure::p50),
                             figure_cell(latency_of(report, member.label, Who::same_requests), figure::p50)});
  }
  return table.scrolling("Latency");
}

}  // namespace

Section latency_section(const Report& report) {
  const std::vector<Group> groups = groups_of(report);
  Markup charts = draw(RowPanel{.id = "latency-all",
                                .heading = "all services: p50 / p99",
                                .scenario = scenario::latency,
                                .x_title = "acquire and release",
                                .row = spread()},
                       report, groups);
  for (const Group& each : groups) charts += distribution(report, each);
  return {.id = "latency",
          .scenario = scenario::latency,
          .title = "A free lock: latency",
          .shows =
              "How long one caller needs to acquire and release a lock that nobody else wants. In the first picture "
              "the dot is the median, the line reaches to the 99th percentile, and the upright stroke is the "
              "median by hand. In the others, a dashed line is by hand; each point of a line says which share of all "
              "calls took no longer; further left is faster, and a line that stays "
              "steep to the top has no slow exceptions. Each picture has its own time axis, which is logarithmic; the "
              "other axis gives the slowest calls the most room.",
          .note = floors_text,
          .charts = std::move(charts),
          .numbers = numbers(report, groups)};
}

}  // namespace dlock::bench

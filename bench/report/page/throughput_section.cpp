// Many callers, each with a lock of its own.
#include <fmt/core.h>

#include "bench/report/figures.hpp"
#include "bench/report/page/bar_chart.hpp"
#include "bench/report/page/section.hpp"
#include "bench/report/selection.hpp"
#include "bench/report/units.hpp"

namespace dlock::bench {

namespace {

BarGroup bars_of(const Report& report, const Member& member) {
  BarGroup bars{.label = member.name, .series = member.series, .bars = {}};
  for (const Point& each : points_of(report, scenario::throughput, member.label, Who::dlock, parameter::callers)) {
    const auto value = median_of(each.measurement, figure::throughput);
    if (!value) continue;
    const Measurement* floor = floor_of(report, *each.measurement, Who::by_hand);
    bars.bars.push_back({.label = count_text(each.x, ""),
                         .value = *value,
                         .text = quantity_text(*value, "1/s"),
                         .floor = median_of(floor, figure::throughput)});
  }
  for (const Point& each : points_of(report, scenario::throughput, member.label, Who::dlock, parameter::outstanding)) {
    const auto value = median_of(each.measurement, figure::throughput);
    if (!value) continue;
    bars.bars.push_back({.label = count_text(each.x, "") + " *",
                         .value = *value,
                         .text = quantity_text(*value, "1/s"),
                         .floor = std::nullopt});
  }
  return bars;
}

std::string words_for(const BarGroup& group) {
  std::string text = group.label + ":";
  for (const Bar& each : group.bars) {
    text += fmt::format(" {} with {}", each.text, each.label);
    if (each.floor) text += fmt::format(" (by hand {})", quantity_text(*each.floor, "1/s"));
    text += ",";
  }
  text.back() = '.';
  return text + " ";
}

Markup draw_group(const Report& report, const Group& group) {
  std::vector<double> values;
  std::string description;
  std::vector<BarGroup> groups;
  for (const Member& member : group.members) {
    BarGroup bars = bars_of(report, member);
    if (bars.bars.empty()) continue;
    for (const Bar& each : bars.bars) {
      values.push_back(each.value);
      if (each.floor) values.push_back(*each.floor);
    }
    description += words_for(bars);
    groups.push_back(std::move(bars));
  }
  if (groups.empty()) return {};
  return panel(group.backend, draw(BarChart{.id = "throughput-" + group.id,
                                            .title = "Throughput, " + group.backend,
                                            .description = description,
                                            .x = Axis::from_zero(values, "acquire and release, a second", "1/s"),
                                            .groups = std::move(groups)}));
}

void add_lines(HtmlTable& table, const Report& report, const Member& member, const char* parameter, const char* noun) {
  for (const Point& each : points_of(report, scenario::throughput, member.label, Who::dlock, parameter)) {
    const Measurement* by_hand = floor_of(report, *each.measurement, Who::by_hand);
    const Measurement* same_requests = floor_of(report, *each.measurement, Who::same_requests);
    table.add(
        member.label,
        {markup("{}{}", count_text(each.x, ""), noun), figure_cell(each.measurement, figure::throughput),
         figure_cell(each.measurement, figure::p50), figure_cell(each.measurement, figure::p99),
         figure_cell(each.measurement, figure::client_cpu), figure_cell(each.measurement, figure::context_switches),
         figure_cell(each.measurement, figure::operations), figure_cell(by_hand, figure::throughput),
         ratio_cell(report, *each.measurement, figure::throughput), figure_cell(same_requests, figure::throughput)});
  }
}

}  // namespace

Section throughput_section(const Report& report) {
  const std::vector<Group> groups = groups_of(report);
  Markup charts;
  HtmlTable table({"service", "callers", "throughput", "p50", "p99", "client processor", "context switches",
                   "server operations", "by hand", "ratio", "same requests"});
  for (const Group& group : groups) {
    charts += draw_group(report, group);
    for (const Member& member : group.members) {
      add_lines(table, report, member, parameter::callers, "");
      add_lines(table, report, member, parameter::outstanding, " async.");
    }
  }
  return {
      .id = "throughput",
      .scenario = scenario::throughput,
      .title = "Many locks at the same time: throughput",
      .shows =
          "How many times a second so many callers, each with a name of its own, acquire and release. The full "
          "bar is dlock, the hollow one below it a lock by hand, with one blocking connection of the C client for "
          "each caller. The number to the left is that of the callers; with a star, of asynchronous calls under way "
          "at the same time. Longer is better; each backend has its own scale.",
      .charts = std::move(charts),
      .numbers = table.scrolling("Throughput")};
}

}  // namespace dlock::bench

// The holder is killed.
#include <fmt/core.h>

#include "bench/report/figures.hpp"
#include "bench/report/page/row_panel.hpp"
#include "bench/report/page/section.hpp"
#include "bench/report/selection.hpp"
#include "bench/report/units.hpp"

namespace dlock::bench {

namespace {

std::string lease_text(const Measurement& measurement) {
  const auto lease = parameter_of(measurement, parameter::lease_ms);
  if (!lease) return not_measured;
  return *lease > 0 ? quantity_text(*lease * 1000, "us") : "none";
}

Row row_of(const Measurement& measurement, const Member& member) {
  const Figure& figure = *measurement.figure(figure::p50);
  Row row;
  row.label = label_of(member);
  row.text = quantity_text(figure.median(), "us");
  row.series = member.series;
  row.muted = member.baseline;
  row.range = std::pair(figure.lowest(), figure.highest());
  row.dots = {figure.median()};
  const double lease = parameter_of(measurement, parameter::lease_ms).value_or(0);
  if (lease > 0) row.strokes = {lease * 1000};
  return row;
}

}  // namespace

Section recovery_section(const Report& report) {
  std::vector<double> values;
  std::vector<Row> rows;
  std::string description;
  HtmlTable table({"service", "lease", "p50", "max"});
  for (const Group& group : groups_of(report)) {
    for (const Member& member : group.members) {
      const Measurement* measurement = only_one_of(report, scenario::recovery, member.label);
      if (!median_of(measurement, figure::p50)) continue;
      rows.push_back(row_of(*measurement, member));
      const Row& row = rows.back();
      values.insert(values.end(), {row.range->first, row.range->second});
      values.insert(values.end(), row.strokes.begin(), row.strokes.end());
      description += fmt::format("{}: {}, lease {}. ", member.label, row.text, lease_text(*measurement));
      table.add(member.label, {markup("{}", lease_text(*measurement)), figure_cell(measurement, figure::p50),
                               figure_cell(measurement, figure::longest)});
    }
  }
  Markup charts;
  if (!rows.empty()) {
    charts = panel_of("all services", RowChart{.id = "recovery",
                                               .title = "Recovery time",
                                               .description = description,
                                               .x = Axis::logarithmic(values, "kill to next holder", "us"),
                                               .rows = std::move(rows)});
  }
  return {.id = "recovery",
          .scenario = scenario::recovery,
          .title = "The holder is killed: recovery",
          .shows =
              "How long after a SIGKILL of the holder a waiter has the lock. The dot is the median of all kills, the "
              "line reaches from the fastest to the slowest, and the upright stroke is the lease that was granted. "
              "Without a stroke there is none: the kernel or the server notices that the process is gone. "
              "A shorter lease recovers sooner, and loses locks sooner when the network stalls. The axis is "
              "logarithmic.",
          .charts = std::move(charts),
          .numbers = table.scrolling("Recovery")};
}

}  // namespace dlock::bench

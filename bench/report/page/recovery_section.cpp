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

std::optional<Row> recovery_row(const Measurement& measurement, const Measurement* /*by_hand*/) {
  if (!median_of(&measurement, figure::p50)) return std::nullopt;
  const Figure& figure = *measurement.figure(figure::p50);
  Row row{.text = quantity_text(figure.median(), "us"),
          .range = std::pair(figure.lowest(), figure.highest()),
          .dots = {figure.median()}};
  row.words = fmt::format("{}, lease {}", row.text, lease_text(measurement));
  const double lease = parameter_of(measurement, parameter::lease_ms).value_or(0);
  if (lease > 0) row.strokes = {lease * 1000};
  return row;
}

}  // namespace

Section recovery_section(const Report& report) {
  const std::vector<Group> groups = groups_of(report);
  HtmlTable table({"service", "lease", "p50", "max"});
  for (const Member& member : together(groups).members) {
    const Measurement* measurement = only_one_of(report, scenario::recovery, member.label);
    if (!median_of(measurement, figure::p50)) continue;
    table.add(member.label, {markup("{}", lease_text(*measurement)), figure_cell(measurement, figure::p50),
                             figure_cell(measurement, figure::longest)});
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
          .charts = draw(RowPanel{.id = "recovery",
                                  .heading = "all services: time to the next holder",
                                  .scenario = scenario::recovery,
                                  .x_title = "kill to next holder",
                                  .row = recovery_row},
                         report, groups),
          .numbers = table.scrolling("Recovery")};
}

}  // namespace dlock::bench

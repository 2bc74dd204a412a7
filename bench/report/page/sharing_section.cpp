// Locks that several hold at the same time.
#include "bench/report/sharing.hpp"

#include "bench/report/figures.hpp"
#include "bench/report/page/row_panel.hpp"
#include "bench/report/page/section.hpp"
#include "bench/report/selection.hpp"

namespace dlock::bench {

namespace {

// A picture is of what a service has one measurement of.
Report only(const Report& whole, const Parameters& parameters) {
  Report report;
  for (const Measurement& each : whole.measurements) {
    if (each.scenario == scenario::sharing && each.parameters == parameters) report.measurements.push_back(each);
  }
  return report;
}

Markup picture(const Report& report, const std::vector<Group>& groups, const SharingColumn& column,
               const std::string& id) {
  if (column.figure == std::string_view(figure::throughput)) {
    return draw(RowPanel{.id = id,
                         .heading = column.what + ", " + column.who,
                         .scenario = scenario::sharing,
                         .figure = column.figure,
                         .unit = column.unit,
                         .x_title = "acquire and release, a second"},
                only(report, column.parameters), groups);
  }
  if (column.figure != std::string_view(figure::p50)) return {};  // one picture shows both
  return draw(SpreadPanel{.id = id,
                          .heading = "wait of a writer, " + column.who + ": p50 / p99",
                          .scenario = scenario::sharing,
                          .x_title = "time until it was held"},
              only(report, column.parameters), groups);
}

}  // namespace

Section sharing_section(const Report& report) {
  const std::vector<Group> groups = groups_of(report);
  const std::vector<SharingColumn> columns = sharing_columns(report);
  Markup charts;
  std::vector<std::string> head = {"service"};
  for (const SharingColumn& each : columns) {
    charts += picture(report, groups, each, "sharing-" + std::to_string(head.size()));
    head.push_back(each.what + ", " + each.who);
  }
  HtmlTable table(std::move(head));
  for (const Group& group : groups) {
    for (const Member& member : group.members) {
      if (only_one_of(report, scenario::sharing, member.label) == nullptr) continue;
      std::vector<Markup> cells;
      cells.reserve(columns.size());
      for (const SharingColumn& each : columns) {
        cells.push_back(figure_cell(measurement_of(report, member.label, each), each.figure));
      }
      table.add(member.label, std::move(cells));
    }
  }
  return {.id = "sharing",
          .scenario = scenario::sharing,
          .title = "Held by several: readers, writers and permits",
          .shows =
              "How many times a second all callers together acquire and release one read-write lock, of which so many "
              "calls read and the others write, and one semaphore; and how long a writer waits while readers come and "
              "go without a pause. Longer bars are better; of waits, to the left is better: the dot is the median, "
              "the line reaches to the 99th percentile, on a logarithmic axis. Services that have no such locks are "
              "missing.",
          .charts = std::move(charts),
          .numbers = table.scrolling("Sharing")};
}

}  // namespace dlock::bench

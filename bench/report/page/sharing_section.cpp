// Locks that several hold at the same time.
#include "bench/report/sharing.hpp"

#include "bench/report/figures.hpp"
#include "bench/report/page/row_panel.hpp"
#include "bench/report/page/section.hpp"
#include "bench/report/selection.hpp"

namespace dlock::bench {

namespace {

Markup picture(const Report& report, const std::vector<Group>& groups, const SharingColumn& column,
               const std::string& id) {
  RowPanel panel{.id = id,
                 .heading = column.what + ", " + column.who,
                 .scenario = scenario::sharing,
                 .parameters = column.parameters,
                 .x_title = "acquire and release, a second",
                 .unit = column.unit,
                 .row = bar_of(column.figure, column.unit)};
  if (column.figure == std::string_view(figure::p99)) return {};  // one picture shows both
  if (column.figure == std::string_view(figure::p50)) {
    panel.heading = "wait of a writer, " + column.who + ": p50 / p99";
    panel.x_title = "time until it was held";
    panel.row = spread();
  }
  return draw(panel, report, groups);
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
  for (const Member& member : together(groups).members) {
    if (only_one_of(report, scenario::sharing, member.label) == nullptr) continue;
    std::vector<Markup> cells;
    cells.reserve(columns.size());
    for (const SharingColumn& each : columns) {
      cells.push_back(figure_cell(measurement_of(report, member.label, each), each.figure));
    }
    table.add(member.label, std::move(cells));
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

// Many callers, each with a lock of its own.
#include "bench/report/figures.hpp"
#include "bench/report/page/line_panels.hpp"
#include "bench/report/page/row_panel.hpp"
#include "bench/report/page/section.hpp"
#include "bench/report/selection.hpp"
#include "bench/report/units.hpp"

namespace dlock::bench {

namespace {

Markup asynchronous(const Report& report, const std::vector<Group>& groups) {
  const std::vector<double> under_way = values_of(report, scenario::throughput, parameter::outstanding);
  if (under_way.empty()) return {};
  return draw(RowPanel{.id = "throughput-asynchronous",
                       .heading = count_text(under_way.back(), "asynchronous call") + " under way",
                       .scenario = scenario::throughput,
                       .parameters = Parameters{{parameter::outstanding, under_way.back()}},
                       .x_title = "acquire and release, a second",
                       .unit = "1/s",
                       .row = bar_of(figure::throughput, "1/s")},
              report, groups);
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
  Markup charts = draw(
      LinePanels{.id = "throughput",
                 .title = "Throughput against callers",
                 .scenario = scenario::throughput,
                 .parameter = parameter::callers,
                 .curves = {{.figure = figure::throughput},
                            {.figure = figure::throughput, .who = Who::by_hand, .dashed = true, .name = "by hand"}},
                 .x_title = "callers",
                 .y_title = "acquire and release, a second",
                 .unit = "1/s",
                 .together = true},
      report, groups);
  charts += asynchronous(report, groups);
  HtmlTable table({"service", "callers", "throughput", "p50", "p99", "client processor", "context switches",
                   "server operations", "by hand", "ratio", "same requests"});
  for (const Member& member : together(groups).members) {
    add_lines(table, report, member, parameter::callers, "");
    add_lines(table, report, member, parameter::outstanding, " async.");
  }
  return {.id = "throughput",
          .scenario = scenario::throughput,
          .title = "Many locks at the same time: throughput",
          .shows =
              "How many times a second so many callers, each with a name of its own, acquire and release. Higher is "
              "better. The first picture has all services, each backend in a colour of its own; in the others a dashed "
              "line is by hand. All of them have the same axes, which are logarithmic. The last picture is of "
              "asynchronous calls.",
          .note = floors_text + file_floor_text(report),
          .charts = std::move(charts),
          .numbers = table.scrolling("Throughput")};
}

}  // namespace dlock::bench

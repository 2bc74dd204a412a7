// Many wait for one lock: how fast it gets from one to the next, and what that costs the service.
#include "bench/report/figures.hpp"
#include "bench/report/page/line_panels.hpp"
#include "bench/report/page/section.hpp"
#include "bench/report/selection.hpp"
#include "bench/report/units.hpp"

namespace dlock::bench {

namespace {

Markup numbers(const Report& report, const std::vector<Group>& groups, std::vector<std::string> head,
               const std::vector<const char*>& figures, std::string_view name) {
  head.insert(head.begin(), {"service", "waiters"});
  HtmlTable table(std::move(head));
  for (const Member& member : together(groups).members) {
    for (const Point& each : points_of(report, scenario::contention, member.label, Who::dlock, parameter::waiters)) {
      std::vector<Markup> cells = {markup("{}", count_text(each.x, ""))};
      for (const char* figure : figures) cells.push_back(figure_cell(each.measurement, figure));
      table.add(member.label, std::move(cells));
    }
  }
  return table.scrolling(name);
}

}  // namespace

Section hand_off_section(const Report& report) {
  const std::vector<Group> groups = groups_of(report);
  return {.id = "hand-off",
          .scenario = scenario::contention,
          .title = "Many wait for one lock: hand-off",
          .shows =
              "How long it takes from the moment that one holder sends its release until the next one runs, by how "
              "many wait; each holds the lock for a millisecond. Marks are medians, the dashed line is the 99th "
              "percentile. A level line does not care how many wait; a high one polls. Both axes are logarithmic, "
              "and the same in all pictures.",
          .charts = draw(
              LinePanels{.id = "hand-off",
                         .title = "Hand-off latency against waiters",
                         .scenario = scenario::contention,
                         .parameter = parameter::waiters,
                         .others = {},
                         .curves = {{.figure = figure::p50}, {.figure = figure::p99, .dashed = true, .name = "p99"}},
                         .x_title = "waiters",
                         .y_title = "release to next holder",
                         .unit = "us"},
              report, groups),
          .numbers = numbers(report, groups, {"p50", "p90", "p99", "max", "hand-offs", "fairness", "longest wait"},
                             {figure::p50, figure::p90, figure::p99, figure::longest, figure::hand_offs,
                              figure::fairness, figure::longest_wait},
                             "Hand-off")};
}

Section herd_section(const Report& report) {
  const std::vector<Group> groups = groups_of(report);
  return {.id = "herd",
          .scenario = scenario::contention,
          .title = "The herd: what a hand-off costs the service",
          .shows =
              "Server operations for each hand-off (marks) and messages to waiters (dashed), by how many wait. Where "
              "one release wakes one waiter the lines are level. Where they climb, each release wakes everybody or "
              "everybody keeps asking, only one can win, and the service works for nothing: a herd. Both axes are "
              "logarithmic; what is 0 lies on the lower edge.",
          .charts = draw(LinePanels{.id = "herd",
                                    .title = "Server operations and wake-ups for each hand-off",
                                    .scenario = scenario::contention,
                                    .parameter = parameter::waiters,
                                    .others = {},
                                    .curves = {{.figure = figure::operations},
                                               {.figure = figure::wake_ups, .dashed = true, .name = "wake-ups"}},
                                    .x_title = "waiters",
                                    .y_title = "for each hand-off",
                                    .unit = ""},
                         report, groups),
          .numbers = numbers(report, groups, {"server operations", "wake-ups"}, {figure::operations, figure::wake_ups},
                             "Herd")};
}

}  // namespace dlock::bench

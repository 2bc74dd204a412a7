// Many leases are held and renewed, nothing else happens.
#include "bench/report/figures.hpp"
#include "bench/report/page/row_panel.hpp"
#include "bench/report/page/section.hpp"
#include "bench/report/selection.hpp"
#include "bench/report/units.hpp"

namespace dlock::bench {

Section holding_section(const Report& report) {
  const std::vector<Group> groups = groups_of(report);
  Markup charts = draw(RowPanel{.id = "holding-client",
                                .heading = "client processor",
                                .scenario = scenario::holding,
                                .figure = figure::client_cpu,
                                .unit = "%",
                                .x_title = "of a core"},
                       report, groups);
  charts += draw(RowPanel{.id = "holding-server",
                          .heading = "server operations",
                          .scenario = scenario::holding,
                          .figure = figure::operations,
                          .unit = "1/s",
                          .x_title = "for each lease"},
                 report, groups);
  charts += draw(RowPanel{.id = "holding-memory",
                          .heading = "client memory",
                          .scenario = scenario::holding,
                          .figure = figure::memory,
                          .unit = "B",
                          .x_title = "for each lease"},
                 report, groups);
  HtmlTable table(
      {"service", "leases", "lease", "client processor", "server operations, lease and second", "memory, lease"});
  for (const Group& group : groups) {
    for (const Member& member : group.members) {
      const Measurement* each = only_one_of(report, scenario::holding, member.label);
      if (each == nullptr) continue;
      const double lease = parameter_of(*each, parameter::lease_ms).value_or(0);
      table.add(member.label, {markup("{}", count_text(parameter_of(*each, parameter::leases).value_or(0), "")),
                               markup("{}", lease > 0 ? quantity_text(lease * 1000, "us") : "none"),
                               figure_cell(each, figure::client_cpu), figure_cell(each, figure::operations),
                               figure_cell(each, figure::memory)});
    }
  }
  return {.id = "holding",
          .scenario = scenario::holding,
          .title = "Many locks are held: the cost of holding",
          .shows =
              "What it costs to hold many locks and to do nothing else: their leases have to be renewed. Shorter is "
              "better. How many were held, and with which lease, is in the table: where a lock takes a connection "
              "of its own, fewer were.",
          .charts = std::move(charts),
          .numbers = table.scrolling("Holding")};
}

}  // namespace dlock::bench

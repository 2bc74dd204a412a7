// Many leases are held and renewed, nothing else happens.
#include "bench/report/figures.hpp"
#include "bench/report/page/row_panel.hpp"
#include "bench/report/page/section.hpp"
#include "bench/report/selection.hpp"
#include "bench/report/units.hpp"

namespace dlock::bench {

Section holding_section(const Report& report) {
  const std::vector<Group> groups = groups_of(report);
  const auto picture = [&](const char* id, const char* heading, const char* figure, const char* unit,
                           const char* x_title) {
    return draw(RowPanel{.id = id,
                         .heading = heading,
                         .scenario = scenario::holding,
                         .x_title = x_title,
                         .unit = unit,
                         .row = bar_of(figure, unit)},
                report, groups);
  };
  Markup charts = picture("holding-client", "client processor", figure::client_cpu, "%", "of a core");
  charts += picture("holding-server", "server operations", figure::operations, "1/s", "for each lease");
  charts += picture("holding-memory", "client memory", figure::memory, "B", "for each lease");
  HtmlTable table(
      {"service", "leases", "lease", "client processor", "server operations, lease and second", "memory, lease"});
  for (const Member& member : together(groups).members) {
    const Measurement* each = only_one_of(report, scenario::holding, member.label);
    if (each == nullptr) continue;
    const double lease = parameter_of(*each, parameter::lease_ms).value_or(0);
    table.add(member.label, {markup("{}", count_text(parameter_of(*each, parameter::leases).value_or(0), "")),
                             markup("{}", lease > 0 ? quantity_text(lease * 1000, "us") : "none"),
                             figure_cell(each, figure::client_cpu), figure_cell(each, figure::operations),
                             figure_cell(each, figure::memory)});
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

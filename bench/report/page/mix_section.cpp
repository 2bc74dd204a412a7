// Many callers, some names wanted more than others.
#include "bench/report/figures.hpp"
#include "bench/report/page/row_panel.hpp"
#include "bench/report/page/section.hpp"
#include "bench/report/selection.hpp"
#include "bench/report/units.hpp"

namespace dlock::bench {

Section mix_section(const Report& report) {
  const std::vector<Group> groups = groups_of(report);
  Markup charts = draw(RowPanel{.id = "mix-throughput",
                                .heading = "throughput",
                                .scenario = scenario::mix,
                                .x_title = "acquire, hold and release, a second",
                                .unit = "1/s",
                                .row = bar_of(figure::throughput, "1/s")},
                       report, groups);
  charts += draw(RowPanel{.id = "mix-waits",
                          .heading = "wait for the lock: p50 / p99",
                          .scenario = scenario::mix,
                          .x_title = "time until it was held",
                          .row = spread()},
                 report, groups);
  HtmlTable table({"service", "callers", "names", "held for", "throughput", "p50", "p99", "max", "fairness"});
  for (const Member& member : together(groups).members) {
    const Measurement* each = only_one_of(report, scenario::mix, member.label);
    if (each == nullptr) continue;
    const auto count = [&](const char* name) {
      return markup("{}", count_text(parameter_of(*each, name).value_or(0), ""));
    };
    table.add(member.label,
              {count(parameter::callers), count(parameter::names),
               markup("{}", quantity_text(parameter_of(*each, parameter::hold_us), "us")),
               figure_cell(each, figure::throughput), figure_cell(each, figure::p50), figure_cell(each, figure::p99),
               figure_cell(each, figure::longest), figure_cell(each, figure::fairness)});
  }
  return {.id = "mix",
          .scenario = scenario::mix,
          .title = "Everything together: a mix",
          .shows =
              "Many callers want many names, some names far more often than others (a Zipf distribution), and hold "
              "each for a while: closest to a real program. To the left of the picture of waits is better; the dot "
              "is the median, the line reaches to the 99th percentile, on a logarithmic axis.",
          .charts = std::move(charts),
          .numbers = table.scrolling("Mix")};
}

}  // namespace dlock::bench

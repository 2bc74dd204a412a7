#include "bench/report/page/row_panel.hpp"

#include <fmt/core.h>

#include "bench/report/figures.hpp"
#include "bench/report/page/section.hpp"
#include "bench/report/selection.hpp"
#include "bench/report/units.hpp"

namespace dlock::bench {

namespace {

Row row_of(const Member& member) {
  Row row;
  row.label = label_of(member);
  row.series = member.series;
  row.muted = member.baseline;
  return row;
}

}  // namespace

Markup panel_of(std::string_view heading, const RowChart& chart) {
  constexpr std::size_t as_high_as_others = 8;  // rows
  if (chart.rows.size() <= as_high_as_others) return panel(heading, draw(chart));
  return markup("<figure class=\"tall\"><figcaption><h3>{}</h3></figcaption>{}</figure>\n", heading, draw(chart));
}

Markup draw(const RowPanel& panel, const Report& report, const std::vector<Group>& groups) {
  std::vector<double> values;
  std::vector<Row> rows;
  std::string description;
  for (const Group& group : groups) {
    for (const Member& member : group.members) {
      const auto value = median_of(only_one_of(report, panel.scenario, member.label), panel.figure);
      if (!value) continue;
      values.push_back(*value);
      Row row = row_of(member);
      row.text = quantity_text(*value, panel.unit);
      row.bar = *value;
      description += fmt::format("{}: {}. ", member.label, row.text);
      rows.push_back(std::move(row));
    }
  }
  if (rows.empty()) return {};
  return panel_of(panel.heading, RowChart{.id = panel.id,
                                          .title = panel.heading,
                                          .description = description,
                                          .x = Axis::from_zero(values, panel.x_title, panel.unit),
                                          .rows = std::move(rows)});
}

Markup draw(const SpreadPanel& panel, const Report& report, const std::vector<Group>& groups) {
  std::vector<double> values;
  std::vector<Row> rows;
  std::string description;
  for (const Group& group : groups) {
    for (const Member& member : group.members) {
      const Measurement* measurement = only_one_of(report, panel.scenario, member.label);
      const auto p50 = median_of(measurement, figure::p50);
      if (!p50) continue;
      const double p99 = median_of(measurement, figure::p99).value_or(*p50);
      Row row = row_of(member);
      row.text = fmt::format("{} / {}", quantity_text(*p50, "us"), quantity_text(p99, "us"));
      row.range = std::pair(*p50, p99);
      row.dots = {*p50};
      values.insert(values.end(), {*p50, p99});
      description +=
          fmt::format("{}: p50 {}, p99 {}", member.label, quantity_text(*p50, "us"), quantity_text(p99, "us"));
      const auto by_hand = median_of(only_one_of(report, panel.scenario, member.label, Who::by_hand), figure::p50);
      if (by_hand) {
        row.strokes = {*by_hand};
        values.push_back(*by_hand);
        description += ", by hand p50 " + quantity_text(*by_hand, "us");
      }
      description += ". ";
      rows.push_back(std::move(row));
    }
  }
  if (rows.empty()) return {};
  return panel_of(panel.heading, RowChart{.id = panel.id,
                                          .title = panel.heading,
                                          .description = description,
                                          .x = Axis::logarithmic(values, panel.x_title, "us"),
                                          .rows = std::move(rows)});
}

}  // namespace dlock::bench

#include "bench/report/page/row_panel.hpp"

#include <utility>

#include <fmt/core.h>

#include "bench/report/figures.hpp"
#include "bench/report/page/section.hpp"
#include "bench/report/selection.hpp"
#include "bench/report/units.hpp"

namespace dlock::bench {

namespace {

const Measurement* measurement_of(const RowPanel& panel, const Report& report, const std::string& service, Who who) {
  return panel.parameters ? report.find(panel.scenario, service, who, *panel.parameters)
                          : only_one_of(report, panel.scenario, service, who);
}

void add_values(std::vector<double>& values, const Row& row) {
  if (row.bar) values.push_back(*row.bar);
  if (row.range) values.insert(values.end(), {row.range->first, row.range->second});
  values.insert(values.end(), row.dots.begin(), row.dots.end());
  values.insert(values.end(), row.strokes.begin(), row.strokes.end());
}

}  // namespace

Markup draw(const RowPanel& panel, const Report& report, const std::vector<Group>& groups) {
  std::vector<double> values;
  std::vector<Row> rows;
  std::string description;
  for (const Member& member : together(groups).members) {
    const Measurement* dlock = measurement_of(panel, report, member.label, Who::dlock);
    if (dlock == nullptr) continue;
    std::optional<Row> row = panel.row(*dlock, measurement_of(panel, report, member.label, Who::by_hand));
    if (!row) continue;
    row->label = label_of(member);
    row->colour = member.colour;
    row->muted = member.baseline;
    add_values(values, *row);
    description += fmt::format("{}: {}. ", member.label, row->words.empty() ? row->text : row->words);
    rows.push_back(std::move(*row));
  }
  if (rows.empty()) return {};
  constexpr std::size_t as_high_as_others = 8;  // rows
  const Height height = rows.size() > as_high_as_others ? Height::two_lines : Height::one_line;
  Axis x = rows.front().bar ? Axis::from_zero(values, panel.x_title, panel.unit)
                            : Axis::logarithmic(values, panel.x_title, panel.unit);
  return bench::panel(panel.heading,
                      draw(RowChart{.id = panel.id,
                                    .title = panel.heading,
                                    .description = std::move(description),
                                    .x = std::move(x),
                                    .rows = std::move(rows)}),
                      {}, height);
}

RowOf bar_of(const char* figure, const char* unit) {
  return [=](const Measurement& dlock, const Measurement* /*by_hand*/) -> std::optional<Row> {
    const auto value = median_of(&dlock, figure);
    if (!value) return std::nullopt;
    return Row{.text = quantity_text(*value, unit), .bar = *value};
  };
}

RowOf spread() {
  return [](const Measurement& dlock, const Measurement* by_hand) -> std::optional<Row> {
    const auto p50 = median_of(&dlock, figure::p50);
    if (!p50) return std::nullopt;
    const double p99 = median_of(&dlock, figure::p99).value_or(*p50);
    Row row{.text = fmt::format("{} / {}", quantity_text(*p50, "us"), quantity_text(p99, "us")),
            .words = fmt::format("p50 {}, p99 {}", quantity_text(*p50, "us"), quantity_text(p99, "us")),
            .range = std::pair(*p50, p99),
            .dots = {*p50}};
    if (const auto floor = median_of(by_hand, figure::p50)) {
      row.strokes = {*floor};
      row.words += ", by hand p50 " + quantity_text(*floor, "us");
    }
    return row;
  };
}

}  // namespace dlock::bench

#include "bench/report/ratios.hpp"

#include <algorithm>

#include <fmt/core.h>

#include "bench/report/figures.hpp"
#include "bench/report/selection.hpp"
#include "bench/report/units.hpp"

namespace dlock::bench {

namespace {

// A column: where its measurement is, and what of it.
struct Column {
  std::string name;
  const char* scenario;
  Parameters parameters;
  const char* figure;
  bool as_ratio = true;
};

std::vector<Column> columns_of(const Report& report, Who floor) {
  const auto throughput = [](const char* parameter, double count, const std::string& name) {
    return Column{name, scenario::throughput, {{parameter, count}}, figure::throughput};
  };
  std::vector<Column> columns = {{"latency", scenario::latency, {}, figure::p50}};
  const std::vector<double> callers = values_of(report, scenario::throughput, parameter::callers);
  for (const double each : callers) {
    columns.push_back(throughput(parameter::callers, each, count_text(each, "caller")));
  }
  if (floor != Who::by_hand) return columns;
  for (const double each : values_of(report, scenario::throughput, parameter::outstanding)) {
    if (std::find(callers.begin(), callers.end(), each) == callers.end()) continue;
    Column column = throughput(parameter::outstanding, each, count_text(each, "") + " async.");
    columns.push_back(column);
    column.name = "async. CPU";
    column.figure = figure::client_cpu;
    column.as_ratio = false;
    columns.push_back(std::move(column));
  }
  return columns;
}

// The latency of an open loop has its rate as a parameter.
const Measurement* measurement_of(const Report& report, const std::string& service, const Column& column) {
  if (column.parameters.empty()) return only_one_of(report, column.scenario, service);
  return report.find(column.scenario, service, Who::dlock, column.parameters);
}

std::optional<Ratio> cell_of(const Report& report, const std::string& service, const Column& column, Who floor) {
  const Measurement* measurement = measurement_of(report, service, column);
  if (measurement == nullptr || floor_of(report, *measurement, floor) == nullptr) return std::nullopt;
  const Figure* figure = measurement->figure(column.figure);
  if (figure == nullptr) return std::nullopt;
  Ratio cell = column.as_ratio ? Ratio{.value = ratio_to_floor(report, *measurement, floor, column.figure)}
                               : Ratio{.value = figure->median(), .unit = figure->unit};
  if (!(cell.value > 0)) return std::nullopt;
  if (floor == Who::by_hand) cell.budget = budget_of(report, *measurement, column.figure);
  return cell;
}

}  // namespace

// As it is shown: nobody should read "1.35, at most 1.35: missed".
bool Ratio::missed() const noexcept {
  if (!budget) return false;
  constexpr double half_a_digit = 0.005;
  return budget->better == Better::lower ? value >= budget->limit + half_a_digit : value < budget->limit - half_a_digit;
}

bool Ratios::any_missed() const noexcept {
  return std::any_of(rows.begin(), rows.end(), [](const Row& row) {
    return std::any_of(row.cells.begin(), row.cells.end(), [](const auto& cell) { return cell && cell->missed(); });
  });
}

Ratios ratios_of(const Report& report, Who floor) {
  const std::vector<Column> columns = columns_of(report, floor);
  Ratios result;
  for (const Column& each : columns) result.columns.push_back(each.name);
  for (const std::string& service : labels_of(report)) {
    Ratios::Row row{service, {}};
    for (const Column& each : columns) row.cells.push_back(cell_of(report, service, each, floor));
    const bool some =
        std::any_of(row.cells.begin(), row.cells.end(), [](const auto& cell) { return cell.has_value(); });
    if (some) result.rows.push_back(std::move(row));
  }
  return result;
}

std::string ratio_text(const Ratio& ratio) {
  return ratio.unit.empty() ? fmt::format("{:.2f}", ratio.value) : quantity_text(ratio.value, ratio.unit);
}

std::string budget_text(const Budget& budget) {
  return fmt::format(
      "{} {}", budget.better == Better::lower ? "<=" : ">=", ratio_text({.value = budget.limit, .unit = budget.unit}));
}

}  // namespace dlock::bench

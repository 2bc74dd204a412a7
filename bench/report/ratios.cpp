#include "bench/report/ratios.hpp"

#include <algorithm>

#include <fmt/core.h>

#include "bench/report/figures.hpp"
#include "bench/report/selection.hpp"
#include "bench/report/units.hpp"

namespace dlock::bench {

namespace {

std::optional<Ratio> ratio(const Report& report, const Measurement* measurement, std::string_view figure) {
  if (measurement == nullptr) return std::nullopt;
  const double value = ratio_to_floor(report, *measurement, figure);
  if (!(value > 0)) return std::nullopt;
  return Ratio{value, budget_of(report, *measurement)};
}

}  // namespace

// As it is shown: nobody should read "1.35, at most 1.35: missed".
bool Ratio::missed() const noexcept {
  if (!budget) return false;
  constexpr double half_a_digit = 0.005;
  return budget->better == Better::lower ? value >= budget->ratio + half_a_digit : value < budget->ratio - half_a_digit;
}

bool Ratios::any_missed() const noexcept {
  return std::any_of(rows.begin(), rows.end(), [](const Row& row) {
    return std::any_of(row.cells.begin(), row.cells.end(), [](const auto& cell) { return cell && cell->missed(); });
  });
}

Ratios ratios_of(const Report& report) {
  const std::vector<double> callers = values_of(report, scenario::throughput, parameter::callers);
  Ratios result;
  result.columns.emplace_back("latency p50");
  for (const double each : callers) result.columns.push_back(count_text(each, "caller"));
  for (const std::string& service : labels_of(report)) {
    Ratios::Row row{service, {ratio(report, latency_of(report, service, Who::dlock), figure::p50)}};
    for (const double each : callers) {
      row.cells.push_back(ratio(report,
                                report.find(scenario::throughput, service, Who::dlock, {{parameter::callers, each}}),
                                figure::throughput));
    }
    const bool some =
        std::any_of(row.cells.begin(), row.cells.end(), [](const auto& cell) { return cell.has_value(); });
    if (some) result.rows.push_back(std::move(row));
  }
  return result;
}

std::string budget_text(const Budget& budget) {
  return fmt::format("{} {:.2f}", budget.better == Better::lower ? "<=" : ">=", budget.ratio);
}

}  // namespace dlock::bench

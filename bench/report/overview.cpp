#include "bench/report/overview.hpp"

#include <fmt/core.h>

#include "bench/report/figures.hpp"
#include "bench/report/selection.hpp"
#include "bench/report/units.hpp"

namespace dlock::bench {

namespace {

std::optional<Counted> counted(const Measurement* measurement, std::string_view parameter, std::string_view figure) {
  const auto value = median_of(measurement, figure);
  if (!value) return std::nullopt;
  return Counted{parameter_of(*measurement, parameter).value_or(0), *value};
}

OverviewRow row_of(const Report& report, const std::string& service) {
  const Measurement* latency = latency_of(report, service, Who::dlock);
  const Measurement* recovery = only_one_of(report, scenario::recovery, service);
  const auto callers = points_of(report, scenario::throughput, service, Who::dlock, parameter::callers);
  const auto waiters = points_of(report, scenario::contention, service, Who::dlock, parameter::waiters);
  return {.service = service,
          .p50 = median_of(latency, figure::p50),
          .p99 = median_of(latency, figure::p99),
          .throughput = counted(most_of(callers), parameter::callers, figure::throughput),
          .hand_off_few = counted(fewest_of(waiters), parameter::waiters, figure::p50),
          .hand_off_many = counted(most_of(waiters), parameter::waiters, figure::p50),
          .operations = counted(most_of(waiters), parameter::waiters, figure::operations),
          .fairness = median_of(most_of(waiters), figure::fairness),
          .recovery = median_of(recovery, figure::p50),
          .lease_ms = recovery == nullptr ? std::nullopt : parameter_of(*recovery, parameter::lease_ms)};
}

}  // namespace

Overview overview_of(const Report& report) {
  Overview overview;
  const auto callers = values_of(report, scenario::throughput, parameter::callers);
  const auto waiters = values_of(report, scenario::contention, parameter::waiters);
  if (!callers.empty()) overview.callers = callers.back();
  if (!waiters.empty()) {
    overview.few = waiters.front();
    overview.many = waiters.back();
  }
  for (const std::string& service : labels_of(report)) overview.rows.push_back(row_of(report, service));
  return overview;
}

std::string counted_text(const std::optional<Counted>& figure, std::string_view unit, double usual) {
  if (!figure) return not_measured;
  std::string text = quantity_text(figure->value, unit);
  if (figure->count != usual) text += fmt::format(" @{:.0f}", figure->count);
  return text;
}

}  // namespace dlock::bench

#include "bench/report/sharing.hpp"

#include <algorithm>

#include "bench/report/figures.hpp"
#include "bench/report/selection.hpp"
#include "bench/report/units.hpp"

namespace dlock::bench {

namespace {

void add_columns(std::vector<SharingColumn>& columns, const Measurement& measurement) {
  const auto number = [&](const char* name) { return parameter_of(measurement, name); };
  const Parameters& parameters = measurement.parameters;
  if (const auto readers = number(parameter::readers)) {
    const std::string who = count_text(*readers, "reader");
    columns.push_back({parameters, figure::p50, "us", "writer, p50", who});
    columns.push_back({parameters, figure::p99, "us", "writer, p99", who});
    return;
  }
  const auto reads = number(parameter::reads);
  const std::string what =
      reads ? round_text(*reads, "") + " % reads" : count_text(number(parameter::permits).value_or(0), "permit");
  columns.push_back(
      {parameters, figure::throughput, "1/s", what, count_text(number(parameter::callers).value_or(0), "caller")});
}

}  // namespace

std::vector<SharingColumn> sharing_columns(const Report& report) {
  std::vector<SharingColumn> columns;
  for (const Measurement& each : report.measurements) {
    if (each.scenario != scenario::sharing || each.who != Who::dlock) continue;
    const bool known = std::any_of(columns.begin(), columns.end(),
                                   [&](const SharingColumn& column) { return column.parameters == each.parameters; });
    if (!known) add_columns(columns, each);
  }
  return columns;
}

const Measurement* measurement_of(const Report& report, const std::string& service,
                                  const SharingColumn& column) noexcept {
  return report.find(scenario::sharing, service, Who::dlock, column.parameters);
}

}  // namespace dlock::bench

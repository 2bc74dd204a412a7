#include "bench/report/budget.hpp"

#include <algorithm>
#include <vector>

#include "bench/report/figures.hpp"
#include "bench/report/selection.hpp"

namespace dlock::bench {

namespace {

struct Line {
  std::string_view backend;
  std::string_view strategy;  // empty: each
  std::string_view scenario;
  std::string_view parameter;  // the only one; empty: there is none
  double count;                // its value
  std::string_view figure;
  Budget budget;
};

bool is_of(const Line& line, const ServiceInfo& service) {
  return line.backend == service.backend && (line.strategy.empty() || line.strategy == service.strategy);
}

bool is_of(const Line& line, const Measurement& measurement) {
  if (line.scenario != measurement.scenario) return false;
  if (line.parameter.empty()) return measurement.parameters.empty();
  return measurement.parameters.size() == 1 && parameter_of(measurement, line.parameter) == line.count;
}

const std::vector<Line>& lines() {
  constexpr Better low = Better::lower;
  constexpr Better high = Better::higher;
  constexpr auto callers = parameter::callers;
  constexpr auto under_way = parameter::outstanding;
  static const std::vector<Line> all = {
      {"redis", "", scenario::latency, "", 0, figure::p50, {low, 0.85}},
      {"redis", "", scenario::throughput, callers, 8, figure::throughput, {high, 1.0}},
      {"redis", "", scenario::throughput, callers, 64, figure::throughput, {high, 1.5}},
      {"redis", "", scenario::throughput, callers, 256, figure::throughput, {high, 1.7}},
      {"redis", "", scenario::throughput, under_way, 64, figure::throughput, {high, 1.8}},
      {"redis", "", scenario::throughput, under_way, 64, figure::client_cpu, {low, 7, "us"}},
      {"postgresql", "table", scenario::latency, "", 0, figure::p50, {low, 1.2}},
      {"postgresql", "table", scenario::throughput, callers, 8, figure::throughput, {high, 1.0}},
      {"postgresql", "table", scenario::throughput, callers, 64, figure::throughput, {high, 2.4}},
      {"zookeeper", "sequential", scenario::latency, "", 0, figure::p50, {low, 0.8}},
      {"zookeeper", "sequential", scenario::throughput, callers, 64, figure::throughput, {high, 3.0}},
      {"etcd", "", scenario::latency, "", 0, figure::p50, {low, 1.2}},
      {"etcd", "", scenario::throughput, callers, 64, figure::throughput, {high, 2.0}},
  };
  return all;
}

}  // namespace

std::optional<Budget> budget_of(const Report& report, const Measurement& measurement, std::string_view figure) {
  const ServiceInfo* service = service_of(report, measurement.service);
  if (service == nullptr || measurement.who != Who::dlock) return std::nullopt;
  const auto found = std::find_if(lines().begin(), lines().end(), [&](const Line& each) {
    return each.figure == figure && is_of(each, *service) && is_of(each, measurement);
  });
  if (found == lines().end()) return std::nullopt;
  return found->budget;
}

}  // namespace dlock::bench

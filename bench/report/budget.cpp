#include "bench/report/budget.hpp"

#include <algorithm>
#include <array>
#include <string_view>

#include "bench/report/figures.hpp"
#include "bench/report/selection.hpp"

namespace dlock::bench {

namespace {

struct Line {
  std::string_view backend;
  std::string_view strategy;  // empty: each
  double callers;
  double ratio;
};

constexpr double latency_ratio = 1.35;
// The floor does one call after the other, which dlock does not.
constexpr double sequential_latency_ratio = 0.90;

constexpr std::array throughput_ratios = {
    Line{"redis", "", 8, 1.0},      Line{"redis", "", 64, 1.5},           Line{"redis", "", 256, 1.7},
    Line{"zookeeper", "", 64, 1.7}, Line{"postgresql", "table", 64, 1.5}, Line{"postgresql", "advisory", 64, 1.0},
};

}  // namespace

std::optional<Budget> budget_of(const Report& report, const Measurement& measurement) {
  const ServiceInfo* service = service_of(report, measurement.service);
  if (service == nullptr || measurement.who != Who::dlock) return std::nullopt;
  if (measurement.scenario == scenario::latency && measurement.parameters.empty()) {
    const bool sequential = service->backend == "zookeeper" && service->strategy == "sequential";
    return Budget{figure::p50, Better::lower, sequential ? sequential_latency_ratio : latency_ratio};
  }
  if (measurement.scenario != scenario::throughput || measurement.parameters.size() != 1) return std::nullopt;
  const auto callers = parameter_of(measurement, parameter::callers);
  const auto* const line = std::find_if(throughput_ratios.begin(), throughput_ratios.end(), [&](const Line& each) {
    return each.backend == service->backend && (each.strategy.empty() || each.strategy == service->strategy) &&
           callers == each.callers;
  });
  if (line == throughput_ratios.end()) return std::nullopt;
  return Budget{figure::throughput, Better::higher, line->ratio};
}

}  // namespace dlock::bench

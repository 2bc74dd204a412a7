#include <memory>
#include <stdexcept>
#include <string>

#include "bench/scenarios/parts.hpp"
#include "bench/scenarios/scenario.hpp"

namespace dlock::bench {

namespace {

using std::chrono::milliseconds;

// Enough for the next one to be waiting already, however far away the service is.
constexpr std::size_t waiters = 8;

using Measure = std::vector<Measurement> (*)(Target& target, const Plan& plan, int round_trip_ms,
                                             const std::stop_token& stop);

std::vector<Measurement> measure_latency_at(Target& target, const Plan& plan, int round_trip_ms,
                                            const std::stop_token& stop) {
  const Subject subject{scenario::distance, {{parameter::round_trip_ms, round_trip_ms}}};
  return measure_latency(target, plan, subject, std::nullopt, stop);
}

std::vector<Measurement> measure_contention_at(Target& target, const Plan& plan, int round_trip_ms,
                                               const std::stop_token& stop) {
  const Subject subject{scenario::distance, {{parameter::round_trip_ms, round_trip_ms}, {parameter::waiters, waiters}}};
  return measure_contention(target, plan, subject, waiters, stop);
}

std::vector<Measurement> measure_at(Target& target, const Plan& plan, int round_trip_ms, Measure measure,
                                    const std::stop_token& stop) {
  if (round_trip_ms == 0) return measure(target, plan, round_trip_ms, stop);
  const std::unique_ptr<Target> far = target.at_distance(milliseconds(round_trip_ms));
  if (!far) throw std::runtime_error("the service is no longer reached over TCP");
  return measure(*far, plan, round_trip_ms, stop);
}

}  // namespace

std::vector<Step> distance_steps(Target& target, const Plan& plan) {
  if (!target.at_distance(milliseconds(1))) return {};
  std::vector<Step> steps;
  const auto add = [&](int round_trip_ms, const std::string& what, std::chrono::nanoseconds expected, Measure measure) {
    steps.push_back({.what = what + " at " + std::to_string(round_trip_ms) + " ms",
                     .scenario = scenario::distance,
                     .expected = expected,
                     .run = [&target, &plan, round_trip_ms, measure](const std::stop_token& stop) {
                       return measure_at(target, plan, round_trip_ms, measure, stop);
                     }});
  };
  const auto time_of_each_latency = time_of_latency(plan, target.has_floor());
  for (const int round_trip_ms : plan.round_trips_ms) {
    add(round_trip_ms, "latency", time_of_each_latency, measure_latency_at);
    if (possible(target, waiters + 1)) {
      add(round_trip_ms, "contention", time_of_contention(plan, waiters), measure_contention_at);
    }
  }
  return steps;
}

}  // namespace dlock::bench

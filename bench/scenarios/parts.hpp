// What several scenarios measure.
#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <stop_token>
#include <vector>

#include "bench/plan.hpp"
#include "bench/report/result.hpp"
#include "bench/scenarios/collector.hpp"
#include "bench/targets/target.hpp"

namespace dlock::bench {

// Acquire and release by one thread, dlock and the floor in turns. With a rate, in an open loop.
[[nodiscard]] std::vector<Measurement> measure_latency(Target& target, const Plan& plan, const Subject& subject,
                                                       std::optional<double> rate, const std::stop_token& stop);
[[nodiscard]] std::chrono::nanoseconds time_of_latency(Target& target, const Plan& plan);

// One lock, handed from one to the next.
[[nodiscard]] std::vector<Measurement> measure_contention(Target& target, const Plan& plan, const Subject& subject,
                                                          std::size_t waiters, const std::stop_token& stop);
[[nodiscard]] std::chrono::nanoseconds time_of_contention(const Plan& plan, std::size_t waiters);

// So many locks of a client are worth trying.
[[nodiscard]] inline bool possible(const Target& target, std::size_t locks) {
  return target.most_locks() == 0 || locks <= target.most_locks();
}

// So many locks, or as many as are worth trying.
[[nodiscard]] inline std::size_t most_possible(const Target& target, std::size_t locks) {
  return possible(target, locks) ? locks : target.most_locks();
}

// For estimates: whether there is a floor to measure. If it cannot be had now, the measurement will say so.
[[nodiscard]] bool has_floor(Target& target);

}  // namespace dlock::bench

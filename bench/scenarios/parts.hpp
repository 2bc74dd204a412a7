// What several scenarios measure.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <optional>
#include <stop_token>
#include <vector>

#include "bench/measure/crowd.hpp"
#include "bench/plan.hpp"
#include "bench/report/result.hpp"
#include "bench/scenarios/collector.hpp"
#include "bench/targets/target.hpp"

namespace dlock::bench {

// Acquire and release by one thread, dlock and the target's floor in turns. With a rate, in an open loop.
[[nodiscard]] std::vector<Measurement> measure_latency(Target& target, const Plan& plan, const Subject& subject,
                                                       std::optional<double> rate, const std::stop_token& stop);
[[nodiscard]] std::chrono::nanoseconds time_of_latency(const Plan& plan, bool with_floor);

// One lock, handed from one to the next.
[[nodiscard]] std::vector<Measurement> measure_contention(Target& target, const Plan& plan, const Subject& subject,
                                                          std::size_t waiters, const std::stop_token& stop);
[[nodiscard]] std::chrono::nanoseconds time_of_contention(const Plan& plan, std::size_t waiters);

// Clients for so many who hold or wait, who are spread over them as over processes: at most that number, and no more
// than eight.
[[nodiscard]] std::vector<Client> connect_several(Target& target, std::size_t locks, std::size_t most);

// Starts the crowd, lets it warm up, and hands out each complete repeat; then the crowd is at its end.
void measure_repeats(Crowd& crowd, const Plan& plan, const std::stop_token& stop,
                     const std::function<void(const Window& window)>& add);

// So many locks of a client are worth trying.
[[nodiscard]] inline bool possible(const Target& target, std::size_t locks) {
  return target.most_locks() == 0 || locks <= target.most_locks();
}

// So many locks, or as many as are worth trying.
[[nodiscard]] inline std::size_t most_possible(const Target& target, std::size_t locks) {
  return possible(target, locks) ? locks : target.most_locks();
}

}  // namespace dlock::bench

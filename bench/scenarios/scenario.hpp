// A kind of measurement, as steps that take a known time each.
#pragma once

#include <chrono>
#include <functional>
#include <stop_token>
#include <string>
#include <vector>

#include "bench/plan.hpp"
#include "bench/report/result.hpp"
#include "bench/targets/target.hpp"

namespace dlock::bench {

struct Step {
  std::string what;                   // for people: "throughput, 64 callers"
  std::string scenario;               // name of figures.hpp
  std::chrono::nanoseconds expected;  // how long it will take
  // Throws what went wrong. When a stop is requested it returns soon, with what is worth keeping.
  std::function<std::vector<Measurement>(const std::stop_token& stop)> run;
};

// One function a scenario; the steps refer to the target and the plan. A scenario that has no meaning for the target
// has no steps. dlock and its floors take turns, repeat by repeat.
[[nodiscard]] std::vector<Step> latency_steps(Target& target, const Plan& plan);
[[nodiscard]] std::vector<Step> throughput_steps(Target& target, const Plan& plan);
[[nodiscard]] std::vector<Step> contention_steps(Target& target, const Plan& plan);
[[nodiscard]] std::vector<Step> recovery_steps(Target& target, const Plan& plan);
[[nodiscard]] std::vector<Step> holding_steps(Target& target, const Plan& plan);
[[nodiscard]] std::vector<Step> distance_steps(Target& target, const Plan& plan);
[[nodiscard]] std::vector<Step> mix_steps(Target& target, const Plan& plan);
[[nodiscard]] std::vector<Step> sharing_steps(Target& target, const Plan& plan);

}  // namespace dlock::bench

// The scenarios: what is measured of a target, as steps that take a known time each.
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
  std::chrono::nanoseconds expected;  // how long it will take
  // Throws what went wrong. When a stop is requested it returns soon, with the repeats that were complete.
  std::function<std::vector<Measurement>(const std::stop_token& stop)> run;
};

// The steps of the plan's scenarios, as far as they have a meaning for the target. They refer to both.
[[nodiscard]] std::vector<Step> steps_of(Target& target, const Plan& plan);

}  // namespace dlock::bench

// The scenarios: measurements of a target, as steps with a known duration.
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
  // Throws its failure. After a stop request, it soon returns the complete repeats.
  std::function<std::vector<Measurement>(const std::stop_token& stop)> run;
};

// The steps of the plan's scenarios, as far as they make sense for the target. They refer to both.
[[nodiscard]] std::vector<Step> steps_of(Target& target, const Plan& plan);

}  // namespace dlock::bench

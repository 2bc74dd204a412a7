// Carries out a plan, service by service.
#pragma once

#include <chrono>
#include <cstddef>
#include <stop_token>
#include <string>
#include <vector>

#include "bench/plan.hpp"
#include "bench/report/result.hpp"

namespace dlock::bench {

// Notified of the progress, on the thread that runs the plan.
class Progress {
 public:
  virtual ~Progress() = default;

  // Before each step. `remaining` is an estimate for this step and all that follow.
  virtual void step(const std::string& service, const std::string& what, std::chrono::nanoseconds remaining) = 0;
  virtual void problem(const Problem& problem) = 0;
};

// All scenarios, in the order in which they are carried out.
[[nodiscard]] std::vector<std::string> scenario_names();

// An invalid URL, an unreachable service and a failed measurement are problems in the report, and the rest continues.
// After a stop request, returns what was measured until then. Removes what it left in the services.
[[nodiscard]] Report run_benchmarks(const Plan& plan, Progress& progress, const std::stop_token& stop);

}  // namespace dlock::bench

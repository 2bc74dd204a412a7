// The choice of measurements, and how long they take.
#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace dlock::bench {

struct Plan {
  std::vector<std::string> urls;       // empty: usual_urls()
  std::vector<std::string> scenarios;  // names of figures.hpp; empty: all
  bool quick = false;
  // An open loop: acquires arrive at this rate per second, even while earlier ones are unanswered, and their time
  // counts from when they were due. nullopt: each caller starts the next one when the last has ended.
  std::optional<double> rate;
  std::string command;        // the command line that makes this plan, for repeating it
  std::string dlock_program;  // starts the holders of the recovery scenario: "PROGRAM hold ..."

  // For every measurement:
  int repeats = 5;
  std::chrono::milliseconds round{800};    // one repeat
  std::chrono::milliseconds warm_up{250};  // before it

  std::vector<std::size_t> callers = {1, 8, 64, 256};
  std::vector<std::size_t> outstanding = {64, 10'000};
  std::vector<std::size_t> waiters = {2, 8, 32, 128, 256};
  std::vector<int> round_trips_ms = {1, 5, 20};  // simulated
  int kills = 5;
  std::size_t held = 1000;  // names, by one client
};

// Sizes for a run of less than forty minutes over all services that scripts/bench starts, and for one of less than
// three minutes.
[[nodiscard]] Plan full_plan();
[[nodiscard]] Plan quick_plan();

}  // namespace dlock::bench

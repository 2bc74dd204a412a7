#include "tests/unit/memory/memory_simulation.hpp"

#include <gtest/gtest.h>

#include <cstdlib>

namespace dlock::memory {
namespace {

// DLOCK_SIMULATION_SEED runs a single seed, DLOCK_SIMULATION_RUNS another number of them.
std::uint64_t from_environment(const char* variable, std::uint64_t otherwise) {
  const char* text = std::getenv(variable);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

class MemorySimulation : public testing::TestWithParam<Strategy> {};

TEST_P(MemorySimulation, KeepsTheContractThroughRandomFaults) {
  const auto only = from_environment("DLOCK_SIMULATION_SEED", 0);
  const auto runs = only != 0 ? 1 : from_environment("DLOCK_SIMULATION_RUNS", 500);
  SimulationCounts sum;
  for (std::uint64_t i = 1; i <= runs; ++i) {
    const std::uint64_t seed = only != 0 ? only : i;
    const auto counts = Simulation(seed, GetParam()).run();
    ASSERT_FALSE(HasFailure()) << "repeat with DLOCK_SIMULATION_SEED=" << seed;
    sum.grants += counts.grants;
    sum.contended_grants += counts.contended_grants;
    sum.timeouts += counts.timeouts;
    sum.failures += counts.failures;
    sum.cancelled += counts.cancelled;
    sum.losses += counts.losses;
    sum.killed_sessions += counts.killed_sessions;
    sum.faults += counts.faults;
  }
  if (only != 0) return;
  // A run in which nothing goes wrong proves nothing.
  EXPECT_GT(sum.grants, 5 * runs);
  EXPECT_GT(sum.contended_grants, runs);
  EXPECT_GT(sum.timeouts, runs);
  EXPECT_GT(sum.failures, runs / 2);
  EXPECT_GT(sum.cancelled, runs / 2);
  EXPECT_GT(sum.losses, runs / 2);
  EXPECT_GT(sum.killed_sessions, runs / 2);
  EXPECT_GT(sum.faults, 10 * runs);
}

INSTANTIATE_TEST_SUITE_P(Strategies, MemorySimulation,
                         testing::Values(Strategy::queue, Strategy::watch, Strategy::poll), [](const auto& strategy) {
                           return strategy.param == Strategy::queue   ? "queue"
                                  : strategy.param == Strategy::watch ? "watch"
                                                                      : "poll";
                         });

}  // namespace
}  // namespace dlock::memory

// The whole library under a great many seeds. DLOCK_SIMULATION_SEED=n runs that one seed, and prints its history;
// DLOCK_SIMULATION_SEEDS=n runs so many.
#include "torture/simulation/simulation.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <map>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "torture/rig/sanitizers.hpp"

namespace dlock::torture::simulation {
namespace {

constexpr std::uint64_t parts = 4;  // which ctest may run at the same time

std::optional<std::uint64_t> from_environment(const char* variable) {
  const char* const text = std::getenv(variable);
  return text == nullptr ? std::nullopt : std::optional(std::strtoull(text, nullptr, 10));
}

std::optional<std::uint64_t> only_seed() {
  return from_environment("DLOCK_SIMULATION_SEED");
}

void print(const std::vector<Event>& history) {
  for (const Event& event : history) std::cout << describe(event, history.front().at) << '\n';
}

// What happened under all seeds together.
struct Sum {
  std::uint64_t seeds = 0;
  std::size_t acquires = 0;
  std::size_t grants = 0;
  std::size_t takeovers = 0;
  std::size_t losses = 0;
  std::size_t writes = 0;
  std::size_t stale_writes = 0;
  std::size_t hand_overs = 0;
  std::map<std::string, std::size_t> denied;
  std::map<std::string, std::size_t> faults;
  MishapCounts mishaps{};
  std::map<std::string, std::size_t> kinds;  // of acquires, by kind of lock and mode

  void add(const std::vector<Event>& history) {
    for (const Event& event : history) {
      if (event.kind != Kind::asked) continue;
      ++kinds[std::string(torture::name_of(event.lock_kind)) + (event.mode == Mode::shared ? " to read" : "")];
    }
  }
  void add(const Counts& counts, const MishapCounts& more) {
    ++seeds;
    acquires += counts.acquires;
    grants += counts.grants;
    takeovers += counts.takeovers;
    losses += counts.losses;
    writes += counts.writes;
    stale_writes += counts.stale_writes;
    hand_overs += counts.hand_overs;
    for (const auto& [word, count] : counts.denied) denied[word] += count;
    for (const auto& [word, count] : counts.faults) faults[word] += count;
    for (std::size_t i = 0; i < more.size(); ++i) mishaps[i] += more[i];
  }
};

void run_seed(std::uint64_t seed, Sum& sum, Kinds kinds = Kinds::all) {
  const Simulated run = simulate(seed, Mutation::none, kinds);
  const Verdict verdict = check(run.history, simulation_rules());
  sum.add(verdict.counts, run.mishaps);
  sum.add(run.history);
  if (only_seed()) print(run.history);
  for (const Violation& violation : verdict.violations) {
    ADD_FAILURE() << "DLOCK_SIMULATION_SEED=" << seed << "\n" << excerpt(run.history, violation);
  }
}

// A run in which little happened shows little.
void expect_enough(Sum sum) {
  EXPECT_GT(sum.acquires, 200 * sum.seeds);
  EXPECT_GT(sum.grants, 130 * sum.seeds);
  EXPECT_GT(sum.takeovers, 5 * sum.seeds);
  EXPECT_GT(sum.losses, 6 * sum.seeds);
  EXPECT_GT(sum.writes, 70 * sum.seeds);
  EXPECT_GT(sum.stale_writes, 12 * sum.seeds);
  EXPECT_GT(sum.hand_overs, 60 * sum.seeds);
  for (const char* const word : {"ambiguous", "busy", "cancelled", "closed", "timed out", "unavailable"}) {
    EXPECT_GT(sum.denied.contains(word) ? sum.denied.at(word) : 0, sum.seeds / 4) << word;
  }
  for (const char* const word : {"bad network", "crash", "cut off", "held messages let go", "power cut", "quit", "stop",
                                 "wall clock back", "wall clock forward"}) {
    EXPECT_GT(sum.faults.contains(word) ? sum.faults.at(word) : 0, sum.seeds / 4) << word;
  }
  constexpr std::uint64_t many_seeds = 100;  // a few may have no lock of some kind
  for (const char* const kind : {"lock", "read-write", "read-write to read", "semaphore", "election"}) {
    if (sum.seeds >= many_seeds) {
      EXPECT_GT(sum.kinds[kind], sum.acquires / 20) << kind;
    }
  }
  for (std::size_t i = 0; i < sum.mishaps.size(); ++i) EXPECT_GT(sum.mishaps[i], 2 * sum.seeds) << mishap_names[i];
}

class Simulation : public testing::TestWithParam<std::uint64_t> {};

TEST_P(Simulation, KeepsAllPromises) {
  Sum sum;
  if (const auto seed = only_seed()) {
    if (GetParam() == 0) run_seed(*seed, sum);
    return;
  }
  const std::uint64_t seeds = from_environment("DLOCK_SIMULATION_SEEDS").value_or(simulation_seeds());
  const std::uint64_t first = 1 + GetParam() * seeds / parts;
  const std::uint64_t last = (GetParam() + 1) * seeds / parts;
  for (std::uint64_t seed = first; seed <= last && !HasFailure(); ++seed) run_seed(seed, sum);
  if (HasFailure()) return;
  EXPECT_EQ(sum.seeds, last - first + 1);
  if (seeds == all_simulation_seeds) {
    EXPECT_GT(sum.acquires, 1'000'000 / parts);
  }
  expect_enough(sum);
}

INSTANTIATE_TEST_SUITE_P(Seeds, Simulation, testing::Range(std::uint64_t{0}, parts),
                         [](const auto& part) { return std::to_string(part.param); });

// Those that once failed, with what they had found, when all locks were plain.
struct KeptSeed {
  std::uint64_t seed;
  const char* finding;
};
constexpr std::array kept_seeds{
    KeptSeed{33, "a request that was held for longer than its lease stood in the queue for nobody"},
    KeptSeed{45, "the same, in a longer queue"},
};

TEST(KeptSeeds, KeepAllPromises) {
  for (const KeptSeed& kept : kept_seeds) {
    SCOPED_TRACE(kept.finding);
    Sum sum;
    run_seed(kept.seed, sum, Kinds::plain);
    EXPECT_GT(sum.grants, 0U);
  }
}

TEST(SimulationOfASeed, IsTheSameEachTime) {
  constexpr std::uint64_t seeds = rig::sanitized ? 1 : 8;
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    const Simulated once = simulate(seed);
    const Simulated again = simulate(seed);
    std::string text;
    std::string text_again;
    for (const Event& event : once.history) text += to_line(event) + "\n";
    for (const Event& event : again.history) text_again += to_line(event) + "\n";
    EXPECT_FALSE(text.empty());
    EXPECT_TRUE(text == text_again) << "seed " << seed;
    EXPECT_EQ(once.mishaps, again.mishaps);
  }
}

TEST(SimulationOfASeed, IsUnlikeThatOfAnother) {
  EXPECT_NE(simulate(1).history, simulate(2).history);
}

}  // namespace
}  // namespace dlock::torture::simulation

// The whole library over each subject under a great many seeds. DLOCK_SIMULATION_SEED=n runs that one seed, and prints
// its history; DLOCK_SIMULATION_SEEDS=n runs so many for each subject.
#include "tests/simulation/simulation.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <map>
#include <optional>
#include <ostream>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tests/support/sanitizers.hpp"

namespace dlock::simulation {

namespace {

std::optional<std::uint64_t> from_environment(const char* variable) {
  const char* const text = std::getenv(variable);
  return text == nullptr ? std::nullopt : std::optional(std::strtoull(text, nullptr, 10));
}

std::optional<std::uint64_t> only_seed() {
  return from_environment("DLOCK_SIMULATION_SEED");
}

// Of the library's build, not of the test's: that is where the time goes.
std::uint64_t seeds_of_a_subject() {
  if (const auto number = from_environment("DLOCK_SIMULATION_SEEDS")) return *number;
  return dlock::test::sanitized ? 2 : 40;
}

// Counts over all seeds.
struct Sum {
  std::uint64_t seeds = 0;
  std::size_t acquires = 0, grants = 0, takeovers = 0, losses = 0, writes = 0, stale_writes = 0, hand_overs = 0;
  std::map<std::string, std::size_t> denied;
  std::map<std::string, std::size_t> faults;
  FateCounts fates{};
  std::map<std::string, std::size_t> kinds;  // of acquires, by kind of lock and mode

  void add(const std::vector<Event>& history) {
    for (const Event& event : history) {
      if (event.kind != Kind::asked) continue;
      ++kinds[std::string(torture::name_of(event.lock_kind)) + (event.mode == Mode::shared ? " to read" : "")];
    }
  }
  void add(const torture::Counts& counts, const FateCounts& more) {
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
    for (std::size_t i = 0; i < more.size(); ++i) fates[i] += more[i];
  }
};

std::ostream& operator<<(std::ostream& out, const Sum& sum) {
  out << sum.seeds << " seeds: " << sum.acquires << " acquires, " << sum.grants << " grants, " << sum.takeovers
      << " takeovers, " << sum.losses << " losses, " << sum.stale_writes << " stale writes, " << sum.hand_overs
      << " hand-overs;";
  for (const auto& [word, count] : sum.denied) out << ' ' << word << ' ' << count;
  for (std::size_t i = 0; i < sum.fates.size(); ++i) out << ", " << fate_names[i] << ' ' << sum.fates[i];
  return out;
}

void run_seed(const Subject& subject, std::uint64_t seed, Sum& sum) {
  const Simulated run = simulate(subject, seed);
  const torture::Verdict verdict = torture::check(run.history, rules_for(subject));
  sum.add(verdict.counts, run.fates);
  sum.add(run.history);
  if (only_seed()) {
    for (const Event& event : run.history) std::cout << describe(event, run.history.front().at) << '\n';
  }
  for (const torture::Violation& violation : verdict.violations) {
    ADD_FAILURE() << "DLOCK_SIMULATION_SEED=" << seed << "\n" << excerpt(run.history, violation);
  }
}

// A run in which little happened shows little.
void expect_enough(const Subject& subject, Sum sum) {
  constexpr std::uint64_t many_seeds = 40;
  if (sum.seeds < many_seeds) return;
  EXPECT_GT(sum.grants, 40 * sum.seeds);
  for (const std::size_t count : {sum.takeovers, sum.losses, sum.stale_writes, sum.hand_overs}) {
    EXPECT_GT(count, sum.seeds);
  }
  static constexpr std::array<std::string_view, 6> denials{"busy",      "cancelled",   "closed",
                                                           "timed out", "unavailable", "ambiguous"};
  for (const std::string_view word : std::span(denials).first(5)) {
    if (subject.spoils || word != "unavailable") {
      EXPECT_GT(sum.denied[std::string(word)], sum.seeds / 10) << word;
    }
  }
  for (const auto& [word, count] : sum.denied) {
    EXPECT_TRUE(std::ranges::count(denials, word) == 1) << word << ", " << count << " times";
  }
  for (const char* const word : {"bad network", "connections broken", "crash", "cut off", "held answers released",
                                 "power cut", "quit", "session expired", "stop", "unreachable", "wall clock back"}) {
    EXPECT_GT(sum.faults[word], sum.seeds / 10) << word;
  }
  if (subject.queries) {
    EXPECT_GT(sum.faults["lock broken"], sum.seeds / 10);
  }
  for (const LockKind kind : subject.kinds) {
    EXPECT_GT(sum.kinds[std::string(torture::name_of(kind))], sum.seeds) << torture::name_of(kind);
  }
  for (std::size_t i = 0; i < sum.fates.size() && subject.spoils; ++i) {
    EXPECT_GT(sum.fates[i], sum.seeds / 4) << fate_names[i];
  }
}

class Simulation : public testing::TestWithParam<Subject> {};

TEST_P(Simulation, KeepsAllPromises) {
  const Subject& subject = GetParam();
  Sum sum;
  if (const auto seed = only_seed()) return run_seed(subject, *seed, sum);
  const auto begin = std::chrono::steady_clock::now();
  for (std::uint64_t seed = 1; seed <= seeds_of_a_subject() && !HasFailure(); ++seed) run_seed(subject, seed, sum);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  std::cout << sum << "; in " << took.count() << " s\n";
  if (!HasFailure()) expect_enough(subject, sum);
}

INSTANTIATE_TEST_SUITE_P(Subjects, Simulation, testing::ValuesIn(subjects()),
                         [](const auto& subject) { return subject.param.name; });

class SeededSimulation : public testing::TestWithParam<Subject> {};

TEST_P(SeededSimulation, IsTheSameEachTime) {
  const Subject& subject = GetParam();
  const std::vector<Event> history = simulate(subject, 1).history;
  EXPECT_TRUE(history == simulate(subject, 1).history);
  EXPECT_FALSE(history == simulate(subject, 2).history);
}

INSTANTIATE_TEST_SUITE_P(Subjects, SeededSimulation,
                         testing::ValuesIn(dlock::test::sanitized ? std::vector{subjects().front()} : subjects()),
                         [](const auto& subject) { return subject.param.name; });

}  // namespace
}  // namespace dlock::simulation

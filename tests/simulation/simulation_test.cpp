// The whole library over each subject under a great many seeds. DLOCK_SIMULATION_SEED=n runs that one seed, and prints
// its history; DLOCK_SIMULATION_SEEDS=n runs so many for each subject.
#include "tests/simulation/simulation.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <map>
#include <optional>
#include <string>

namespace dlock::simulation {
namespace {

std::optional<std::uint64_t> from_environment(const char* variable) {
  const char* const text = std::getenv(variable);
  return text == nullptr ? std::nullopt : std::optional(std::strtoull(text, nullptr, 10));
}

// By words, over all seeds.
using Counts = std::map<std::string, std::size_t>;

void count(const Simulated& run, const torture::Counts& counts, Counts& sum) {
  sum["grants"] += counts.grants;
  sum["takeovers"] += counts.takeovers;
  sum["losses"] += counts.losses;
  sum["stale writes"] += counts.stale_writes;
  sum["hand-overs"] += counts.hand_overs;
  for (const auto& [word, number] : counts.denied) sum["denied: " + word] += number;
  for (const auto& [word, number] : counts.faults) sum["fault: " + word] += number;
  for (std::size_t i = 0; i < fates; ++i) sum["fate: " + std::string(fate_names[i])] += run.fates[i];
  for (const Event& event : run.history) {
    if (event.kind == Kind::asked) ++sum["asked: " + std::string(torture::name_of(event.lock_kind))];
  }
}

void run_seed(const Subject& subject, std::uint64_t seed, bool print, Counts& sum) {
  const Simulated run = simulate(subject, seed);
  const torture::Verdict verdict = torture::check(run.history, rules_for(subject));
  count(run, verdict.counts, sum);
  for (const Event& event : run.history) {
    if (print) std::cout << describe(event, run.history.front().at) << '\n';
  }
  for (const torture::Violation& violation : verdict.violations) {
    ADD_FAILURE() << "DLOCK_SIMULATION_SEED=" << seed << "\n" << excerpt(run.history, violation);
  }
  if (seed == 1 && !is_brief()) {
    EXPECT_TRUE(run.history == simulate(subject, seed).history) << "another history of the same seed";
  }
}

// A run in which little happened shows little.
void expect_enough(const Subject& subject, std::uint64_t seeds, Counts sum) {
  const auto expect_more = [&sum](const std::string& word, std::uint64_t least) {
    EXPECT_GT(sum[word], least) << word;
  };
  expect_more("grants", 40 * seeds);
  for (const char* const word : {"takeovers", "losses", "stale writes", "hand-overs"}) expect_more(word, seeds);
  for (const char* const word :
       {"denied: busy", "denied: cancelled", "denied: closed", "denied: timed out", "fault: bad network",
        "fault: connections broken", "fault: crash", "fault: cut off", "fault: held answers released",
        "fault: power cut", "fault: quit", "fault: session expired", "fault: stop", "fault: unreachable",
        "fault: wall clock back"}) {
    expect_more(word, seeds / 10);
  }
  if (subject.queries) expect_more("fault: lock broken", seeds / 10);
  if (subject.spoils) expect_more("denied: unavailable", seeds / 10);
  for (std::size_t i = 0; i < fates && subject.spoils; ++i) {
    expect_more("fate: " + std::string(fate_names[i]), seeds / 4);
  }
  for (const LockKind kind : subject.kinds) expect_more("asked: " + std::string(torture::name_of(kind)), seeds);
  constexpr std::array known{"denied: ambiguous", "denied: busy",      "denied: cancelled",
                             "denied: closed",    "denied: timed out", "denied: unavailable"};
  for (const auto& [word, number] : sum) {
    EXPECT_TRUE(!word.starts_with("denied") || std::ranges::count(known, word) == 1) << word << ' ' << number;
  }
}

class Simulation : public testing::TestWithParam<Subject> {};

// Shows: one-holder, loss-signal, growing-tokens, only-the-owner, no-residue, crash-safety, deadlines, nothing-guessed
// Shows: renewal, waiters-woken, release-reports, read-write, semaphores, fencing
TEST_P(Simulation, RandomFaults_BreakNoPromise) {
  Counts sum;
  if (const auto seed = from_environment("DLOCK_SIMULATION_SEED")) return run_seed(GetParam(), *seed, true, sum);
  const std::uint64_t seeds = from_environment("DLOCK_SIMULATION_SEEDS").value_or(is_brief() ? 2 : 40);
  for (std::uint64_t seed = 1; seed <= seeds && !HasFailure(); ++seed) run_seed(GetParam(), seed, false, sum);
  for (const auto& [word, number] : sum) std::cout << word << ' ' << number << ", ";
  std::cout << seeds << " seeds\n";
  if (!HasFailure() && seeds >= 40) expect_enough(GetParam(), seeds, sum);
}

INSTANTIATE_TEST_SUITE_P(Subjects, Simulation, testing::ValuesIn(subjects()),
                         [](const auto& subject) { return subject.param.name; });

}  // namespace
}  // namespace dlock::simulation

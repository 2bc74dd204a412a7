// The power of the checker and of the nemesis: a library that is broken in one way is found out, by the rule that
// stands for it, within a few rounds. The same arenas are clean with the library as it is.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <iostream>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "tests/torture/services/arena.hpp"
#include "tests/torture/services/run_in_arena.hpp"

namespace dlock::torture {

namespace {

using namespace std::chrono_literals;

constexpr int most_rounds = 12;
constexpr auto round_length = 6s;

struct Mutant {
  std::string name;
  std::string arena;
  std::set<Rule> rules;          // any of which finds it out
  std::set<std::string> only{};  // the faults that matter; empty: all
};
void PrintTo(const Mutant& mutant, std::ostream* out) {
  *out << mutant.name;
}

const std::set<std::string> stopped_holders{"holder stopped before a write", "holder stopped before a look",
                                            "holder stopped between steps"};

class MutantTest : public testing::TestWithParam<Mutant> {
 protected:
  static std::unique_ptr<Arena> make_arena(const std::string& name) {
    const auto kinds = all_arenas();
    const auto found = std::find_if(kinds.begin(), kinds.end(), [&](const auto& kind) { return kind.name == name; });
    return found == kinds.end() ? nullptr : found->make();
  }
};

TEST_P(MutantTest, IsFoundOut) {
  const Mutant& mutant = GetParam();
  const auto begin = std::chrono::steady_clock::now();
  for (int round = 1; round <= most_rounds; ++round) {
    const auto arena = make_arena(mutant.arena);
    if (!arena) GTEST_SKIP() << "the backend of " << mutant.arena << " is not built";
    const Outcome outcome = run_in(*arena, mutant.name,
                                   {.worker = std::string(DLOCK_MUTANTS) + "/mutant_" + mutant.name,
                                    .length = round_length,
                                    .seed = static_cast<std::uint64_t>(round),
                                    .keep = false,
                                    .repetitions = 1,
                                    .only = mutant.only,
                                    .until_found = mutant.rules,
                                    .recovery = 4s});  // the service is up all the time
    const auto& found = outcome.verdict.found;
    const auto by =
        std::find_if(found.begin(), found.end(), [&](const auto& each) { return mutant.rules.contains(each.first); });
    if (by == found.end()) continue;
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begin;
    std::cout << "mutant " << mutant.name << " was caught by the rule \"" << name_of(by->first) << "\" in round "
              << round << ", after " << taken.count() << " s\n";
    return;
  }
  FAIL() << "the mutant was not found out";
}

INSTANTIATE_TEST_SUITE_P(
    All, MutantTest,
    testing::Values(
        Mutant{"held_ignores_the_clock", "redis_queue", {Rule::exclusion}, {"holder stopped before a look"}},
        Mutant{"loss_late", "redis_queue", {Rule::timely_loss}, stopped_holders},
        Mutant{"delete_without_compare", "redis_queue", {Rule::honest_release}, stopped_holders},
        Mutant{"expiry_set_later", "redis_poll", {Rule::progress}, {"holder killed"}},
        Mutant{"token_repeats", "redis_broadcast", {Rule::unique_tokens}, {"holder killed"}},
        Mutant{"renewal_revives", "redis_queue", {Rule::exclusion}, stopped_holders},
        Mutant{"tombstone_forgotten", "zookeeper_sequential", {Rule::progress}, {"answers held up for a moment"}},
        Mutant{"wake_up_lost", "zookeeper_sequential", {Rule::hand_over, Rule::progress}, {"waiter killed"}}),
    [](const auto& test) { return test.param.name; });

}  // namespace

}  // namespace dlock::torture

// The power of the checker and of the nemesis: a library that is broken in one way is found out, by the rule that
// stands for it, within a few rounds. A control shows that it is the mutation that is found: the library as it is
// breaks none of these rules in the same arena, under the same faults and seeds. Where it does, the mutant's test
// fails.
//
// Each test ends with a row of a table:
//
//   | mutant | arena | rule | round | seconds | control |
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <iostream>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "tests/torture/breakage/wall_clock.hpp"
#include "tests/torture/services/arena.hpp"

namespace dlock::torture {
namespace {

using namespace std::chrono_literals;
using std::chrono::seconds;

// A mutant that needs more is found by luck, and says little of the checker's power.
constexpr int most_rounds = 3;

struct Mutant {
  std::string name;
  std::string arena;
  std::set<Rule> rules;          // any of which finds it out
  std::set<std::string> only{};  // the faults that matter; empty: all
  seconds length = 6s;           // of a round
  int locks = 2;                 // how many the workers contend for
};
void PrintTo(const Mutant& mutant, std::ostream* out) {
  *out << mutant.name;
}

const std::set<std::string> stopped_holders{"holder stopped before a write", "holder stopped before a look",
                                            "holder stopped between steps"};
const std::set<std::string> stopped_before_a_look{"holder stopped before a look"};

std::optional<Rule> first_of(const std::set<Rule>& rules, const std::map<Rule, std::size_t>& found) {
  for (const auto& [rule, times] : found) {
    if (rules.contains(rule)) return rule;
  }
  return std::nullopt;
}

double seconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

class MutantTest : public testing::TestWithParam<Mutant> {
 protected:
  static std::unique_ptr<Arena> make_arena(const std::string& name) {
    const auto kinds = all_arenas();
    const auto found = std::find_if(kinds.begin(), kinds.end(), [&](const auto& kind) { return kind.name == name; });
    return found == kinds.end() ? nullptr : found->make();
  }

  static torture::Setup setup_for(const Mutant& mutant, int round) {
    auto setup = usual_setup();
    setup.length = mutant.length;
    setup.seed = static_cast<std::uint64_t>(round);
    setup.repetitions = 1;
    setup.locks.clear();
    for (int lock = 1; lock <= mutant.locks; ++lock) setup.locks.push_back("torture/" + std::to_string(lock));
    setup.only = mutant.only;
    set_recovery(setup, 4s);  // the service is up all the time, or soon
    return setup;
  }

  static std::map<Rule, std::size_t> run_mutant(const Mutant& mutant, Arena& arena, int round) {
    auto setup = setup_for(mutant, round);
    setup.worker = {std::string(DLOCK_MUTANTS) + "/mutant_" + mutant.name};
    setup.until_found = mutant.rules;
    return run_in(arena, mutant.name, setup, {}, false).verdict.found;
  }

  // What the library as it is breaks in this round. Mutants that differ in nothing but the mutation share it: so it
  // does not end with a violation, as that may be of a rule that is another's.
  static const std::map<Rule, std::size_t>& run_control(const Mutant& mutant, int round) {
    static std::map<std::tuple<std::string, std::set<std::string>, seconds, int, int>, std::map<Rule, std::size_t>>
        known;
    const auto [run, added] = known.try_emplace({mutant.arena, mutant.only, mutant.length, mutant.locks, round});
    if (added) {
      const auto arena = make_arena(mutant.arena);
      run->second = run_in(*arena, "control-" + mutant.name, setup_for(mutant, round), {}, false).verdict.found;
    }
    return run->second;
  }

  // Of all rounds that the mutant took.
  static std::string control_of(const Mutant& mutant, int rounds) {
    for (int round = 1; round <= rounds; ++round) {
      const auto broken = first_of(mutant.rules, run_control(mutant, round));
      if (broken) return fmt::format("breaks {} in round {}", name_of(*broken), round);
    }
    return "clean";
  }
};

TEST_P(MutantTest, BrokenLibrary_IsFound) {
  const Mutant& mutant = GetParam();
  if (std::string why_not; mutant.only.contains("wall clock stepped by hours") && !WallClock::available(why_not)) {
    GTEST_SKIP() << why_not;
  }
  const auto begin = std::chrono::steady_clock::now();
  std::optional<Rule> by;
  int round = 0;
  while (!by && round < most_rounds) {
    const auto arena = make_arena(mutant.arena);
    if (!arena) GTEST_SKIP() << "the backend of " << mutant.arena << " is not built";
    by = first_of(mutant.rules, run_mutant(mutant, *arena, ++round));
  }
  const double taken = seconds_since(begin);
  const std::string control = control_of(mutant, round);
  std::cout << fmt::format("| {} | {} | {} | {} | {:.1f} | {} |", mutant.name, mutant.arena,
                           by ? name_of(*by) : "not found", round, taken, control)
            << std::endl;
  EXPECT_TRUE(by) << "the mutant was not found out";
  EXPECT_EQ(control, "clean") << "the library as it is breaks a rule of the mutant's, too: finding it says nothing";
}

INSTANTIATE_TEST_SUITE_P(
    All, MutantTest,
    testing::Values(
        Mutant{"held_ignores_the_clock", "redis_queue", {Rule::exclusion}, stopped_before_a_look, 10s},
        // Whoever stood still for longer than its lease elsewhere mostly looks no more.
        Mutant{"loss_late", "redis_queue", {Rule::timely_loss}, stopped_before_a_look, 10s},
        Mutant{"delete_without_compare", "redis_queue", {Rule::honest_release}, stopped_holders},
        Mutant{"expiry_set_later", "redis_poll", {Rule::progress}, {"holder killed"}},
        Mutant{"token_repeats", "redis_broadcast", {Rule::unique_tokens}, {"holder killed"}},
        Mutant{"renewal_revives", "redis_queue", {Rule::exclusion, Rule::timely_loss}, stopped_before_a_look, 10s},
        Mutant{"removal_forgotten", "zookeeper_sequential", {Rule::progress}, {"answers held up for a moment"}},
        Mutant{"wake_up_lost", "zookeeper_sequential", {Rule::hand_over, Rule::progress}, {"waiter killed"}},
        Mutant{"postgres_token_before_the_wait", "postgres_advisory", {Rule::unique_tokens}, {"waiter stopped"}},
        Mutant{"postgres_token_of_the_transaction", "postgres_for_update", {Rule::growing_tokens}, {"waiter stopped"}},
        Mutant{"postgres_take_over_early", "postgres_optimistic", {Rule::exclusion}, {"waiter stopped"}},
        // The server lets the session that keeps a lock in again, which hides it as long as its process comes back to
        // that lock: so there are more locks than processes.
        Mutant{"postgres_no_unlock_after_error", "postgres_advisory", {Rule::progress}, {"tokens locked"}, 6s, 8},
        Mutant{"postgres_loss_untold", "postgres_advisory", {Rule::exclusion}, {"sessions terminated"}},
        // Acquires whose answers were lost are released, too.
        Mutant{"mysql_release_of_another",
               "mysql_table",
               {Rule::exclusion},
               {"connections reset", "answers held up"},
               10s},
        Mutant{"mysql_bell_believed", "mysql_table", {Rule::exclusion}, {"sessions killed"}},
        Mutant{"mysql_end_unnoticed", "mysql_named", {Rule::exclusion}, {"sessions killed"}},
        Mutant{"file_token_of_the_clock", "file", {Rule::growing_tokens}, {"wall clock stepped by hours"}},
        Mutant{"file_record_believed", "file", {Rule::progress, Rule::hand_over}, {"waiter stopped"}},
        Mutant{"file_removed_in_use", "file", {Rule::exclusion}, {"waiter stopped"}}),
    [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace dlock::torture

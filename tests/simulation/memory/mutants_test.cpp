// The simulation and the checker tested: whatever is broken must be found, by the rule that is there for it.
#include <gtest/gtest.h>

#include <cstdint>
#include <iostream>
#include <ostream>
#include <string>

#include "tests/simulation/memory/memory_service.hpp"
#include "tests/simulation/simulation.hpp"

namespace dlock::simulation {
namespace {

// The rarest of these shows under every tenth seed or so.
constexpr std::uint64_t most_seeds = 200;

struct Expectation {
  Mutation mutation;
  Rule rule;
  memory::Strategy strategy = memory::Strategy::watch;
};

void PrintTo(const Expectation& expectation, std::ostream* out) {
  *out << to_string(expectation.mutation) << " breaks " << name_of(expectation.rule);
}

class SimulatedMutant : public testing::TestWithParam<Expectation> {};

TEST_P(SimulatedMutant, Mutant_BreaksItsRule) {
  for (std::uint64_t seed = 1; seed <= most_seeds; ++seed) {
    const Subject subject = memory_subject(Way::messages, GetParam().strategy, GetParam().mutation);
    const Simulated run = simulate(subject, seed, GetParam().mutation);
    const torture::Verdict verdict = torture::check(run.history, rules_for(subject));
    if (verdict.found.contains(GetParam().rule)) {
      RecordProperty("seed", std::to_string(seed));
      std::cout << "found under seed " << seed << '\n';
      return;
    }
  }
  ADD_FAILURE() << "not found under " << most_seeds << " seeds";
}

INSTANTIATE_TEST_SUITE_P(
    , SimulatedMutant,
    testing::Values(
        Expectation{Mutation::token_repeats, Rule::unique_tokens},
        Expectation{Mutation::token_of_wall_clock, Rule::growing_tokens},
        Expectation{Mutation::blind_release, Rule::exclusion},
        Expectation{Mutation::release_lies, Rule::honest_release},
        Expectation{Mutation::release_waits_for_lease, Rule::hand_over},
        Expectation{Mutation::late_grant, Rule::exclusion}, Expectation{Mutation::no_drift_margin, Rule::exclusion},
        Expectation{Mutation::early_expiry, Rule::exclusion}, Expectation{Mutation::two_holders, Rule::exclusion},
        Expectation{Mutation::late_signal, Rule::timely_loss}, Expectation{Mutation::lost_wake_up, Rule::hand_over},
        Expectation{Mutation::late_deadline, Rule::deadlines}, Expectation{Mutation::deaf_to_cancel, Rule::deadlines},
        Expectation{Mutation::residue_on_give_up, Rule::hand_over},
        Expectation{Mutation::residue_on_give_up, Rule::no_residue},
        Expectation{Mutation::immortal_lease, Rule::progress}, Expectation{Mutation::immortal_lease, Rule::no_residue},
        Expectation{Mutation::blind_resource, Rule::fencing}, Expectation{Mutation::stale_count, Rule::exclusion},
        Expectation{Mutation::permit_of_another, Rule::exclusion},
        Expectation{Mutation::writer_out_of_line, Rule::hand_over, memory::Strategy::poll},
        Expectation{Mutation::two_step_election, Rule::exclusion}),
    [](const auto& each) {
      std::string name = std::string(to_string(each.param.mutation)) + "_" + std::string(name_of(each.param.rule));
      for (char& c : name) c = c == ' ' || c == '-' ? '_' : c;
      return name;
    });

}  // namespace
}  // namespace dlock::simulation

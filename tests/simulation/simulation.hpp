// Many clients in one thread, on a clock that the simulation moves, over a network and machines that break: the real
// core and a real backend over a fake of its service, under a seed. What comes of it is a history, which check()
// decides on.
//
//   const Simulated run = simulate(subject, seed);
//   const Verdict verdict = check(run.history, rules_for(subject));
//
// The same seed makes the same history. Things break for a while; then all is healed and goes on for long enough to
// see that the locks go from hand to hand again; then all quit, and nothing may be left of them.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <vector>

#include "tests/simulation/network.hpp"
#include "tests/simulation/service.hpp"
#include "tests/support/sanitizers.hpp"
#include "torture/checker/checker.hpp"

namespace dlock::simulation {

struct Simulated {
  std::vector<Event> history;
  FateCounts fates;
};

[[nodiscard]] Simulated simulate(const Subject& subject, std::uint64_t seed, Mutation mutation = Mutation::none);

// Whether only a few seeds and a part of the sweep run: with sanitizers, which take ten times as long, and with
// DLOCK_SIMULATION_BRIEF.
[[nodiscard]] inline bool is_brief() {
  return test::sanitized || std::getenv("DLOCK_SIMULATION_BRIEF") != nullptr;
}

// The rules that a simulated history must keep.
[[nodiscard]] Rules rules_for(const Subject& subject);

}  // namespace dlock::simulation

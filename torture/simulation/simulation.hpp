// Many clients in one thread, on a clock that the simulation moves, over a network and machines that break: the real
// core and the real memory backend, under a seed. What comes of it is a history, which check() decides on.
//
//   const Simulated run = simulate(seed);
//   const Verdict verdict = check(run.history, run.rules);
//
// The same seed makes the same history. Things break for a while; then all is healed and goes on for long enough to
// see that the locks go from hand to hand again; then all quit, and nothing may be left of them.
#pragma once

#include <cstdint>
#include <vector>

#include "torture/checker/checker.hpp"
#include "torture/history/event.hpp"
#include "torture/simulation/mutation.hpp"
#include "torture/simulation/network.hpp"
#include "torture/simulation/plan.hpp"

namespace dlock::torture::simulation {

struct Simulated {
  std::vector<Event> history;
  MishapCounts mishaps;
};

[[nodiscard]] Simulated simulate(std::uint64_t seed, Mutation mutation = Mutation::none, Kinds kinds = Kinds::all);

// How many seeds a run of the tests is to try: all of them where the library is optimised and nothing watches over it,
// a few elsewhere.
inline constexpr std::uint64_t all_simulation_seeds = 4800;
[[nodiscard]] std::uint64_t simulation_seeds();

// What a simulated history is held to.
[[nodiscard]] Rules simulation_rules();

}  // namespace dlock::torture::simulation

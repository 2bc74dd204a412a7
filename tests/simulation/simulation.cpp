#include "tests/simulation/simulation.hpp"

#include <algorithm>
#include <utility>

#include "tests/simulation/nemesis.hpp"
#include "tests/simulation/stage.hpp"

namespace dlock::simulation {

Simulated simulate(const Subject& subject, std::uint64_t seed, Mutation mutation) {
  constexpr std::chrono::nanoseconds sound_times = 6s;
  World world(seed, mutation);
  const Plan plan = make_plan(world.dice, subject.kinds, subject.min_lease);
  Network network(world);
  Resource resource(world, mutation == Mutation::blind_resource);
  Stage stage(world, plan, subject, seed);
  const auto start_process = [&] { stage.start_process().start_workers(resource, plan); };
  Nemesis nemesis(world, stage, network, plan, start_process);
  stage.service().fate = [&network](int process, std::string_view /*request*/) { return network.decide(process); };
  stage.service().delay = [&network] { return network.delay(); };

  for (std::uint64_t i = 0; i < plan.processes; ++i) start_process();
  nemesis.begin();
  stage.run_for(plan.chaos);
  nemesis.heal();
  const TimePoint settled = world.now() + rules_for(subject).settled;
  stage.run_until(stage.leftovers_gone());
  while (world.now() < settled) {
    stage.note_residue();
    stage.run_until(std::min(settled, world.now() + 500ms));
  }
  stage.run_for(sound_times);
  stage.quit_all();
  stage.probe();
  stage.note_residue_of_all();
  return {.history = world.take_history(), .fates = network.counts()};
}

Rules rules_for(const Subject& subject) {
  // A lock may be free for as long as this after everything was healed. By then the leases of those who died have
  // expired, and of owners not known to hold the lock: they are shorter. What late answers bring back after that is
  // cleaned up at once, so it does not add to it.
  const std::chrono::nanoseconds healing = std::max(subject.recovery, longest_lease) + 1s;
  Hole hole{.rules = {Rule::exclusion, Rule::growing_tokens, Rule::honest_release},
            .strikes = {"lock broken"},
            .belief = std::max(subject.session, longest_lease)};
  if (subject.expires_holders) hole.strikes.insert("session expired");
  return {
      .slack = response_timeout + 100ms,
      .release = response_timeout + 100ms,
      .loss_slack = 1ms,
      .recovery = healing,
      .settled = healing,
      .hand_over = subject.hand_over,
      .hole = std::move(hole),
  };
}

}  // namespace dlock::simulation

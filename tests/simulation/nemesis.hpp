// Breaks things in a simulation, at random and for a while, and heals them all in the end.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tests/simulation/network.hpp"
#include "tests/simulation/plan.hpp"
#include "tests/simulation/process.hpp"
#include "tests/simulation/stage.hpp"
#include "tests/simulation/world.hpp"

namespace dlock::simulation {

class Nemesis {
 public:
  // start: starts one more process.
  Nemesis(World& world, Stage& stage, Network& network, const Plan& plan, std::function<void()> start)
      : world_(world), stage_(stage), network_(network), plan_(plan), start_(std::move(start)) {}

  // Goes on until heal().
  void begin();
  void heal();

 private:
  void act();
  void change_the_weather();
  void cut_off();
  void stop();
  void kill();
  void quit();
  void step_a_wall_clock();
  void break_connections();
  void make_unreachable();
  void expire();
  void release_held();
  void break_a_lock();
  void replace_later();
  // One that is alive, rather one that holds a lock; null if there is none.
  [[nodiscard]] SimulatedProcess* victim();
  [[nodiscard]] SimulatedProcess* holder();

  World& world_;
  Stage& stage_;
  Network& network_;
  const Plan& plan_;
  const std::function<void()> start_;
  std::vector<SimulatedProcess*> unburied_;
  bool healed_ = false;
};

}  // namespace dlock::simulation

// Breaks things in a simulation, at random and for a while, and heals them all in the end.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tests/simulation/network.hpp"
#include "tests/simulation/plan.hpp"
#include "tests/simulation/process.hpp"
#include "tests/simulation/service.hpp"
#include "tests/simulation/world.hpp"

namespace dlock::simulation {

class Nemesis {
 public:
  using Processes = std::vector<std::unique_ptr<SimulatedProcess>>;
  // start: starts one more process.
  Nemesis(World& world, Service& service, Network& network, ServiceClock& clock, Processes& processes, const Plan& plan,
          std::function<void()> start)
      : world_(world),
        service_(service),
        network_(network),
        clock_(clock),
        processes_(processes),
        plan_(plan),
        start_(std::move(start)) {}

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
  void replace_later();
  // One that is alive, rather one that holds a lock; null if there is none.
  [[nodiscard]] SimulatedProcess* victim();
  [[nodiscard]] SimulatedProcess* holder();

  World& world_;
  Service& service_;
  Network& network_;
  ServiceClock& clock_;
  Processes& processes_;
  const Plan& plan_;
  const std::function<void()> start_;
  std::vector<SimulatedProcess*> unburied_;
  bool healed_ = false;
};

}  // namespace dlock::simulation

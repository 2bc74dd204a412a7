// Breaks things in a simulation, at random and for a while, and heals them all in the end.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "torture/simulation/plan.hpp"
#include "torture/simulation/process.hpp"
#include "torture/simulation/service.hpp"
#include "torture/simulation/world.hpp"

namespace dlock::torture::simulation {

class Nemesis {
 public:
  using Processes = std::vector<std::unique_ptr<SimulatedProcess>>;
  // start: starts one more process.
  Nemesis(World& world, Service& service, Processes& processes, const Plan& plan, std::function<void()> start)
      : world_(world), service_(service), processes_(processes), plan_(plan), start_(std::move(start)) {}

  // Goes on until heal().
  void begin();
  void heal();

 private:
  void act();
  void go_direct(bool direct);
  // A network that is to lose something has to be used.
  [[nodiscard]] bool may_go_direct() const { return plan_.direct && service_.mutation != Mutation::lost_wake_up; }
  void change_the_weather();
  void cut_off();
  void stop();
  void kill();
  void quit();
  void step_a_wall_clock();
  void let_go_of_messages();
  void replace_later();
  // One that is alive, rather one that holds a lock; null if there is none.
  [[nodiscard]] SimulatedProcess* victim();
  [[nodiscard]] SimulatedProcess* holder();

  World& world_;
  Service& service_;
  Processes& processes_;
  const Plan& plan_;
  const std::function<void()> start_;
  std::vector<SimulatedProcess*> unburied_;
  bool direct_ = true;  // messages do not travel just now
  bool healed_ = false;
};

}  // namespace dlock::torture::simulation

// Where processes and a service run together: their time moves when nothing is left to run.
#pragma once

#include <chrono>
#include <memory>
#include <vector>

#include "tests/simulation/clocks.hpp"
#include "tests/simulation/engine.hpp"
#include "tests/simulation/plan.hpp"
#include "tests/simulation/process.hpp"
#include "tests/simulation/service.hpp"
#include "tests/simulation/world.hpp"

namespace dlock::simulation {

class Stage {
 public:
  Stage(World& world, const Plan& plan, const Subject& subject, std::uint64_t seed)
      : world_(world), plan_(plan), subject_(subject), service_(subject.make(*engine_, seed)) {}

  SimulatedProcess& start_process();
  // Whatever is due at one instant happens in any order: a task of this process, a task of that one.
  void run_until(TimePoint end);
  void run_for(std::chrono::nanoseconds time) { run_until(world_.now() + time); }

  // Closes the clients of all processes that are alive.
  void quit_all();
  // A new process gets each lock, and gives it back by ending.
  void probe();
  // When what dead processes may have left is gone.
  [[nodiscard]] TimePoint leftovers_gone() const;
  // Notes owners in the service that no process wants.
  void note_residue();
  // The same when all have quit, and of processes that did not end.
  void note_residue_of_all();

  [[nodiscard]] const Subject& subject() const { return subject_; }
  [[nodiscard]] Service& service() { return *service_; }
  [[nodiscard]] ServiceClock& clock() { return *clock_; }
  [[nodiscard]] std::vector<std::unique_ptr<SimulatedProcess>>& processes() { return processes_; }

 private:
  [[nodiscard]] TimePoint next() const;

  World& world_;
  const Plan& plan_;
  const Subject& subject_;
  const std::shared_ptr<ServiceClock> clock_ = std::make_shared<ServiceClock>(world_.time);
  const std::shared_ptr<SimulatedEngine> engine_ = std::make_shared<SimulatedEngine>(world_.dice.roll(), clock_);
  const std::unique_ptr<Service> service_;
  std::vector<std::unique_ptr<SimulatedProcess>> processes_;
  std::vector<SimulatedProcess*> ready_;  // nullptr: the service
};

}  // namespace dlock::simulation

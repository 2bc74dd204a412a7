// Where processes and a service run together: their time moves when nothing is left to run.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <vector>

#include "tests/simulation/process.hpp"
#include "tests/simulation/service.hpp"
#include "tests/simulation/world.hpp"

namespace dlock::simulation {

class Stage {
 public:
  Stage(World& world, const Plan& plan, const Subject& subject, std::uint64_t seed)
      : world_(world), plan_(plan), subject_(subject), service_(subject.make(*engine_, seed)) {}

  SimulatedProcess& start_process() {
    const int number = static_cast<int>(processes_.size()) + 1;
    processes_.push_back(std::make_unique<SimulatedProcess>(number, world_, *service_, plan_));
    return *processes_.back();
  }

  // Whatever is due at one instant happens in any order: a task of this process, a task of that one.
  void run_until(TimePoint end) {
    while (true) {
      ready_.clear();
      if (engine_->ready()) ready_.push_back(nullptr);
      for (const auto& process : processes_) {
        if (process->ready()) ready_.push_back(process.get());
      }
      if (!ready_.empty()) {
        SimulatedProcess* const one = ready_[world_.dice.below(ready_.size())];
        one == nullptr ? (void)engine_->run_one() : one->run_one();
        continue;
      }
      TimePoint next = std::min(world_.next(), engine_->next_timer().value_or(TimePoint::max()));
      for (const auto& process : processes_) next = std::min(next, process->next());
      world_.time.now = std::max(world_.now(), std::min(next, end));
      if (next > end) return;
      world_.run_due();
    }
  }
  void run_for(std::chrono::nanoseconds time) { run_until(world_.now() + time); }

  // Closes the clients of all processes that are alive.
  void quit_all() {
    for (const auto& process : processes_) {
      if (process->alive()) process->quit();
    }
    run_for(longest_lease);
  }

  // A new process gets each lock, and gives it back by ending.
  void probe() {
    SimulatedProcess& prober = start_process();
    for (const SimulatedLock& lock : plan_.locks) {
      bool granted = false;
      prober.acquire(lock, Mode::exclusive, {.wait = std::chrono::seconds(1), .lease = longest_lease},
                     [&granted](std::error_code ec, Lease) { granted = !ec; });
      run_for(std::chrono::seconds(2));
      world_.note({.kind = Kind::probed,
                   .lock = lock.name,
                   .lock_kind = lock.lock_kind,
                   .yes = granted,
                   .word = granted ? "" : "timed out"});
    }
    prober.quit();
    run_for(longest_lease);
  }

  // When what dead processes may have left is gone.
  [[nodiscard]] TimePoint leftovers_gone() const {
    return world_.now() + std::max(longest_lease, subject_.session) + std::chrono::seconds(1);
  }

  // Notes owners in the service that no process wants.
  void note_residue() {
    for (const SimulatedLock& lock : plan_.locks) {
      std::size_t claims = 0;
      for (const auto& process : processes_) {
        if (process->alive()) claims += process->claims().count(lock.name, world_.now());
      }
      const std::size_t owners = service_->owners(lock.lock_kind, lock.name);
      if (owners <= claims) continue;
      world_.note({.kind = Kind::residue,
                   .lock = lock.name,
                   .lock_kind = lock.lock_kind,
                   .word = fmt::format("{} owners, though {} want it", owners, claims)});
    }
  }
  // The same when all have quit, and of processes that did not end.
  void note_residue_of_all() {
    note_residue();
    for (const auto& process : processes_) {
      if (process->alive() || process->state() == SimulatedProcess::State::quits) {
        world_.note({.kind = Kind::residue, .word = fmt::format("process {} has not ended", process->number())});
      } else if (process->state() == SimulatedProcess::State::ended && process->pending_timers() != 0) {
        world_.note({.kind = Kind::residue, .word = fmt::format("timers of process {}", process->number())});
      }
    }
  }

  [[nodiscard]] const Subject& subject() const { return subject_; }
  [[nodiscard]] Service& service() { return *service_; }
  [[nodiscard]] SimulatedClock& clock() { return *clock_; }
  [[nodiscard]] std::vector<std::unique_ptr<SimulatedProcess>>& processes() { return processes_; }

 private:
  World& world_;
  const Plan& plan_;
  const Subject& subject_;
  const std::shared_ptr<SimulatedClock> clock_ = std::make_shared<SimulatedClock>(world_.time);
  const std::shared_ptr<SimulatedEngine> engine_ = std::make_shared<SimulatedEngine>(world_.dice.roll(), clock_);
  const std::unique_ptr<Service> service_;
  std::vector<std::unique_ptr<SimulatedProcess>> processes_;
  std::vector<SimulatedProcess*> ready_;  // nullptr: the service
};

}  // namespace dlock::simulation

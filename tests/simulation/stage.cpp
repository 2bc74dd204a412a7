#include "tests/simulation/stage.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace dlock::simulation {

using namespace std::chrono_literals;

SimulatedProcess& Stage::start_process() {
  const int number = static_cast<int>(processes_.size()) + 1;
  processes_.push_back(std::make_unique<SimulatedProcess>(number, world_, *service_, plan_));
  return *processes_.back();
}

void Stage::run_until(TimePoint end) {
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
    const TimePoint soon = next();
    world_.time.now = std::max(world_.now(), std::min(soon, end));
    if (soon > end) return;
    world_.run_due();
  }
}

TimePoint Stage::next() const {
  TimePoint first = std::min(world_.next(), engine_->next_timer().value_or(TimePoint::max()));
  for (const auto& process : processes_) first = std::min(first, process->next());
  return first;
}

void Stage::quit_all() {
  for (const auto& process : processes_) {
    if (process->alive()) process->quit();
  }
  run_for(longest_lease);
}

void Stage::probe() {
  SimulatedProcess& prober = start_process();
  for (const SimulatedLock& lock : plan_.locks) {
    bool granted = false;
    prober.acquire(lock, Mode::exclusive, {.wait = 1s, .lease = longest_lease},
                   [&granted](std::error_code ec, Lease) { granted = !ec; });
    run_for(2s);
    world_.note({.kind = Kind::probed,
                 .lock = lock.name,
                 .lock_kind = lock.lock_kind,
                 .yes = granted,
                 .word = granted ? "" : "timed out"});
  }
  prober.quit();
  run_for(longest_lease);
}

TimePoint Stage::leftovers_gone() const {
  return world_.now() + std::max(longest_lease, subject_.session) + 1s;
}

void Stage::note_residue() {
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

void Stage::note_residue_of_all() {
  note_residue();
  for (const auto& process : processes_) {
    if (process->alive() || process->state() == SimulatedProcess::State::quits) {
      world_.note({.kind = Kind::residue, .word = fmt::format("process {} has not ended", process->number())});
    } else if (process->state() == SimulatedProcess::State::ended && process->pending_timers() != 0) {
      world_.note({.kind = Kind::residue, .word = fmt::format("timers of process {}", process->number())});
    }
  }
}

}  // namespace dlock::simulation

#include "tests/simulation/nemesis.hpp"

#include <algorithm>
#include <utility>

namespace dlock::simulation {

using namespace std::chrono_literals;

void Nemesis::begin() {
  act();
}

void Nemesis::act() {
  world_.later(world_.dice.up_to(plan_.calm), [this] {
    if (healed_) return;
    const auto what = world_.dice.below(100);
    if (what < 25) {
      change_the_weather();
    } else if (what < 40) {
      stop();
    } else if (what < 50) {
      cut_off();
    } else if (what < 57) {
      break_connections();
    } else if (what < 62) {
      make_unreachable();
    } else if (what < 66) {
      expire();
    } else if (what < 76) {
      kill();
    } else if (what < 81) {
      quit();
    } else if (what < 90) {
      step_a_wall_clock();
    } else if (what < 93) {
      break_a_lock();
    } else {
      release_held();
    }
    act();
  });
}

// --- What it does ----------------------------------------------------------------------------------------------------

void Nemesis::change_the_weather() {
  const bool was_good = network_.trouble() == 0;
  network_.set_trouble(was_good ? std::uint64_t{1} << world_.dice.below(7) : 0);
  world_.note({.kind = was_good ? Kind::struck : Kind::healed, .word = "bad network"});
}

void Nemesis::cut_off() {
  SimulatedProcess* const whom = victim();
  if (whom == nullptr) return;
  const int number = whom->number();
  network_.cut_off(number, network_.some_fate());
  world_.note({.kind = Kind::struck, .subject = number, .word = "cut off"});
  world_.later(world_.dice.up_to(4s), [this, number] {
    if (healed_) return;
    network_.connect(number);
    world_.note({.kind = Kind::healed, .subject = number, .word = "cut off"});
  });
}

void Nemesis::stop() {
  SimulatedProcess* const whom = victim();
  if (whom == nullptr || whom->state() != SimulatedProcess::State::runs) return;
  world_.note({.kind = Kind::struck, .subject = whom->number(), .word = "stop"});
  whom->stop();
  world_.later(world_.dice.up_to(world_.dice.chance(50) ? 5s : 300ms), [whom] { whom->resume(); });
}

// The service learns of it at once, as where the kernel closes the connections, or later, as where power went.
void Nemesis::kill() {
  SimulatedProcess* const whom = victim();
  if (whom == nullptr) return;
  const bool at_once = world_.dice.chance(50);
  world_.note({.kind = Kind::struck, .subject = whom->number(), .word = at_once ? "crash" : "power cut"});
  whom->kill();
  replace_later();
  if (at_once) return whom->bury();
  unburied_.push_back(whom);
  world_.later(world_.dice.up_to(5s), [this, whom] {
    if (std::erase(unburied_, whom) != 0) whom->bury();
  });
}

void Nemesis::quit() {
  SimulatedProcess* const whom = victim();
  if (whom == nullptr || whom->state() != SimulatedProcess::State::runs) return;
  world_.note({.kind = Kind::struck, .subject = whom->number(), .word = "quit"});
  whom->quit();
  replace_later();
}

void Nemesis::step_a_wall_clock() {
  const auto by = world_.dice.up_to(world_.dice.chance(50) ? 2h : 2s) / (world_.dice.chance(50) ? 1 : -1);
  world_.note({.kind = Kind::struck, .word = by > 0s ? "wall clock forward" : "wall clock back"});
  if (world_.dice.chance(50)) return stage_.clock().step_wall(by);
  if (SimulatedProcess* const whom = victim()) whom->clock().step_wall(by);
}

void Nemesis::break_connections() {
  SimulatedProcess* const whom = victim();
  if (whom == nullptr) return;
  world_.note({.kind = Kind::struck, .subject = whom->number(), .word = "connections broken"});
  stage_.service().cut(whom->number());
}

void Nemesis::make_unreachable() {
  SimulatedProcess* const whom = victim();
  if (whom == nullptr) return;
  const int number = whom->number();
  world_.note({.kind = Kind::struck, .subject = number, .word = "unreachable"});
  stage_.service().set_reachable(number, false);
  stage_.service().cut(number);
  world_.later(world_.dice.up_to(3s), [this, number] {
    if (healed_) return;
    stage_.service().set_reachable(number, true);
    world_.note({.kind = Kind::healed, .subject = number, .word = "unreachable"});
  });
}

void Nemesis::expire() {
  SimulatedProcess* const whom = victim();
  if (whom == nullptr) return;
  world_.note(session_expired(whom->number(), world_.now()));
  stage_.service().expire(whom->number());
}

void Nemesis::release_held() {
  if (!plan_.lets_go) return;
  world_.note({.kind = Kind::struck, .word = "held answers released"});
  stage_.service().release_held();
}

// As an operator does, or a program that removes what it should not. What a request does whose outcome is unknown, it
// does soon.
void Nemesis::break_a_lock() {
  const SimulatedLock& lock = plan_.locks[world_.dice.below(plan_.locks.size())];
  SimulatedProcess* const whose = victim();
  if (!stage_.subject().queries || whose == nullptr || !whose->capabilities().can_break ||
      whose->state() != SimulatedProcess::State::runs)
    return;
  world_.note(lock_broken(Kind::struck, lock));
  const auto end = [this, &lock](const Result<bool>& broken) {
    world_.later(broken.ok() ? 0s : longest_delay, [this, &lock] { world_.note(lock_broken(Kind::healed, lock)); });
  };
  if (!world_.dice.chance(30)) return whose->break_lock(lock, end);
  stage_.service().remove_owner(lock.lock_kind, lock.name);
  end(true);
}

void Nemesis::replace_later() {
  world_.later(world_.dice.up_to(500ms), [this] { start_(); });
}

void Nemesis::heal() {
  healed_ = true;
  network_.heal();
  stage_.service().release_held();
  for (const auto& process : stage_.processes()) {
    stage_.service().set_reachable(process->number(), true);
    process->resume();
  }
  for (SimulatedProcess* const dead : std::exchange(unburied_, {})) dead->bury();
  world_.note({.kind = Kind::healed, .word = std::string(torture::everything)});
}

// --- To whom ---------------------------------------------------------------------------------------------------------

SimulatedProcess* Nemesis::holder() {
  const SimulatedLock& lock = plan_.locks[world_.dice.below(plan_.locks.size())];
  const int number = stage_.service().holder(lock.lock_kind, lock.name);
  const auto found = std::find_if(stage_.processes().begin(), stage_.processes().end(),
                                  [&](const auto& p) { return p->number() == number; });
  return found != stage_.processes().end() && (*found)->alive() ? found->get() : nullptr;
}

SimulatedProcess* Nemesis::victim() {
  // Chance alone rarely meets a holder, and hardly shows anything.
  if (world_.dice.chance(70)) {
    if (SimulatedProcess* const found = holder()) return found;
  }
  std::vector<SimulatedProcess*> alive;
  for (const auto& process : stage_.processes()) {
    if (process->alive()) alive.push_back(process.get());
  }
  return alive.empty() ? nullptr : alive[world_.dice.below(alive.size())];
}

}  // namespace dlock::simulation

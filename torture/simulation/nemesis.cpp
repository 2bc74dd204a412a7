#include "torture/simulation/nemesis.hpp"

#include <algorithm>
#include <utility>

namespace dlock::torture::simulation {

using namespace std::chrono_literals;

void Nemesis::begin() {
  go_direct(may_go_direct());
  act();
}

void Nemesis::act() {
  world_.later(world_.dice.up_to(plan_.calm), [this] {
    if (healed_) return;
    const auto what = world_.dice.below(100);
    if (what < 25) {
      change_the_weather();
    } else if (what < 50) {
      stop();
    } else if (what < 65) {
      cut_off();
    } else if (what < 75) {
      kill();
    } else if (what < 80) {
      quit();
    } else if (what < 90) {
      step_a_wall_clock();
    } else {
      let_go_of_messages();
    }
    act();
  });
}

// --- What it does ----------------------------------------------------------------------------------------------------

void Nemesis::go_direct(bool direct) {
  if (std::exchange(direct_, direct) != direct) service_.travel(!direct);
}

void Nemesis::change_the_weather() {
  Network& network = *service_.network;
  const bool was_good = network.trouble() == 0;
  network.set_trouble(was_good ? 5 + world_.dice.below(60) : 0);
  world_.note({.kind = was_good ? Kind::struck : Kind::healed, .word = "bad network"});
  go_direct(!was_good && may_go_direct());
}

void Nemesis::cut_off() {
  SimulatedProcess* const whom = victim();
  if (whom == nullptr || direct_) return;
  const int number = whom->number();
  service_.network->cut_off(number, static_cast<Mishap>(world_.dice.below(mishap_names.size())));
  world_.note({.kind = Kind::struck, .subject = number, .word = "cut off"});
  world_.later(world_.dice.up_to(4s), [this, number] {
    if (healed_) return;
    service_.network->connect(number);
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
  if (world_.dice.chance(50)) return service_.clock.step_wall(by);
  if (SimulatedProcess* const whom = victim()) whom->clock().step_wall(by);
}

void Nemesis::let_go_of_messages() {
  if (!plan_.lets_go) return;
  world_.note({.kind = Kind::struck, .word = "held messages let go"});
  service_.store->faults().resume();
}

void Nemesis::replace_later() {
  world_.later(world_.dice.up_to(500ms), [this] { start_(); });
}

void Nemesis::heal() {
  healed_ = true;
  service_.network->heal();
  service_.store->faults().resume();
  for (const auto& process : processes_) process->resume();
  for (SimulatedProcess* const dead : std::exchange(unburied_, {})) dead->bury();
  go_direct(may_go_direct());
  world_.note({.kind = Kind::healed, .word = std::string(everything)});
}

// --- To whom ---------------------------------------------------------------------------------------------------------

SimulatedProcess* Nemesis::holder() {
  const SimulatedLock& lock = plan_.locks[world_.dice.below(plan_.locks.size())];
  const LockInfo info = service_.store->inspect(lock.lock_kind, lock.name, service_.clock);
  if (!info.held) return nullptr;
  const int number = process_of(info.holder);
  const auto found =
      std::find_if(processes_.begin(), processes_.end(), [&](const auto& p) { return p->number() == number; });
  return found != processes_.end() && (*found)->alive() ? found->get() : nullptr;
}

SimulatedProcess* Nemesis::victim() {
  // Chance alone rarely meets a holder, and hardly shows anything.
  if (world_.dice.chance(70)) {
    if (SimulatedProcess* const found = holder()) return found;
  }
  std::vector<SimulatedProcess*> alive;
  for (const auto& process : processes_) {
    if (process->alive()) alive.push_back(process.get());
  }
  return alive.empty() ? nullptr : alive[world_.dice.below(alive.size())];
}

}  // namespace dlock::torture::simulation

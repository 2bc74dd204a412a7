#include "tests/simulation/network.hpp"

namespace dlock::simulation {

using namespace std::chrono_literals;

Fate Network::decide(int process) {
  Fate fate = Fate::answer;
  if (const auto cut = cut_.find(process); cut != cut_.end()) {
    fate = cut->second;
  } else if (trouble_ != 0 && world_.dice.chance(trouble_)) {
    fate = some_fate();
  }
  if (fate == Fate::expire) world_.note(session_expired(process, world_.now()));
  ++counts_[static_cast<std::size_t>(fate)];
  return fate;
}

std::chrono::nanoseconds Network::delay() {
  return world_.dice.up_to(world_.dice.chance(25) ? longest_delay : 100ms);
}

}  // namespace dlock::simulation

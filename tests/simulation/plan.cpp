#include "tests/simulation/plan.hpp"

#include "tests/simulation/clocks.hpp"

namespace dlock::simulation {

using namespace std::chrono_literals;

namespace {

std::vector<SimulatedLock> make_locks(std::uint64_t count, Dice& dice, const std::vector<LockKind>& kinds) {
  constexpr std::uint32_t most_permits = 4;
  std::vector<SimulatedLock> locks;
  for (std::uint64_t i = 0; i < count; ++i) {
    SimulatedLock& lock = locks.emplace_back(
        SimulatedLock{.name = std::string(1, static_cast<char>('a' + i)), .lock_kind = dice.pick(kinds)});
    if (dice.chance(30)) lock.lock_kind = kinds.front();  // for acquires of two plain locks
    if (lock.lock_kind == LockKind::semaphore) lock.permits = 1 + static_cast<std::uint32_t>(dice.below(most_permits));
  }
  return locks;
}

}  // namespace

Plan make_plan(Dice& dice, const std::vector<LockKind>& kinds, std::chrono::nanoseconds min_lease) {
  // Within 1 % of each other, and of the service's clock.
  constexpr std::int64_t spread = ProcessClock::true_rate / 1000 * 95 / 10;
  const auto slowest =
      ProcessClock::true_rate - static_cast<std::int64_t>(dice.below(static_cast<std::uint64_t>(spread) + 1));
  return {
      .processes = 2 + dice.below(4),
      .workers = 1 + dice.below(3),
      .locks = make_locks(1 + dice.below(3), dice, kinds),
      .slowest_clock = slowest,
      .fastest_clock = slowest + spread,
      .chaos = dice.between(1s, 15s),
      .lets_go = dice.chance(50),
      .calm = dice.between(50ms, 1s),
      .longest_rest = dice.between(10ms, 300ms),
      .min_lease = min_lease,
  };
}

}  // namespace dlock::simulation

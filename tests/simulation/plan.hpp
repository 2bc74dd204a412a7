// The plan that a seed makes for a simulation, and the constants of all simulations.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include <dlock/lock_kind.hpp>

#include "tests/simulation/clocks.hpp"
#include "tests/simulation/world.hpp"

namespace dlock::simulation {

inline constexpr std::chrono::nanoseconds response_timeout = std::chrono::milliseconds(500);
inline constexpr std::chrono::nanoseconds connect_timeout = std::chrono::seconds(1);
inline constexpr std::chrono::nanoseconds longest_lease = std::chrono::seconds(3);

// Names are unlike each other, whatever kinds they are of.
struct SimulatedLock {
  std::string name;
  LockKind lock_kind = LockKind::lock;
  std::uint32_t permits = 1;
};

struct Plan {
  std::uint64_t processes{};
  std::uint64_t workers{};  // of each process
  std::vector<SimulatedLock> locks{};
  std::int64_t slowest_clock{};             // the clocks' rates are between this one
  std::int64_t fastest_clock{};             // and this one
  std::chrono::nanoseconds chaos{};         // how long things are broken
  bool lets_go{};                           // of answers that are held, now and then
  std::chrono::nanoseconds calm{};          // how long the nemesis waits at most before its next deed
  std::chrono::nanoseconds longest_rest{};  // of a worker, between two acquires
  std::chrono::nanoseconds min_lease{};     // of an acquire
};

inline Plan make_plan(Dice& dice, const std::vector<LockKind>& kinds, std::chrono::nanoseconds min_lease) {
  using namespace std::chrono_literals;
  // Within 1 % of each other, and of the service's clock.
  constexpr std::int64_t spread = SimulatedClock::true_rate / 1000 * 95 / 10;
  const auto slowest = SimulatedClock::true_rate - static_cast<std::int64_t>(dice.below(std::uint64_t{spread} + 1));
  Plan plan{.processes = 2 + dice.below(4),
            .workers = 1 + dice.below(3),
            .locks = std::vector<SimulatedLock>(1 + dice.below(3)),
            .slowest_clock = slowest,
            .fastest_clock = slowest + spread,
            .min_lease = min_lease};
  for (char name = 'a'; SimulatedLock & lock : plan.locks) {
    lock = {.name = std::string(1, name++), .lock_kind = dice.pick(kinds)};
    if (dice.chance(30)) lock.lock_kind = kinds.front();  // for acquires of two plain locks
    if (lock.lock_kind == LockKind::semaphore) lock.permits = 1 + static_cast<std::uint32_t>(dice.below(4));
  }
  plan.chaos = dice.between(1s, 15s);
  plan.lets_go = dice.chance(50);
  plan.calm = dice.between(50ms, 1s);
  plan.longest_rest = dice.between(10ms, 300ms);
  return plan;
}

}  // namespace dlock::simulation

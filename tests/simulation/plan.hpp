// The plan that a seed makes for a simulation, and the constants of all simulations.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include <dlock/lock_kind.hpp>

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

[[nodiscard]] Plan make_plan(Dice& dice, const std::vector<LockKind>& kinds, std::chrono::nanoseconds min_lease);

}  // namespace dlock::simulation

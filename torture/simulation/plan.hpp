// What a seed makes of a simulation, and what every simulation has in common.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include <dlock/lock_kind.hpp>

#include "backends/memory/memory_backend.hpp"
#include "torture/dice.hpp"

namespace dlock::torture::simulation {

inline constexpr std::chrono::nanoseconds response_timeout = std::chrono::milliseconds(500);
inline constexpr std::chrono::nanoseconds shortest_lease = std::chrono::milliseconds(50);
inline constexpr std::chrono::nanoseconds longest_lease = std::chrono::seconds(3);

// Names are unlike each other, whatever kinds they are of.
struct SimulatedLock {
  std::string name;
  LockKind lock_kind = LockKind::lock;
  std::uint32_t permits = 1;
};

// Which kinds of locks there are.
enum class Kinds { all, plain };

struct Plan {
  memory::Strategy strategy;
  std::uint64_t processes;
  std::uint64_t workers;  // of each process
  std::vector<SimulatedLock> locks;
  std::chrono::nanoseconds latency;       // of a message, in good times
  bool direct;                            // in good times messages do not travel: the store is called
  std::int64_t slowest_clock;             // the clocks' rates are between this one
  std::int64_t fastest_clock;             // and this one
  std::chrono::nanoseconds chaos;         // how long things are broken
  bool lets_go;                           // of messages that are held, now and then
  std::chrono::nanoseconds calm;          // how long the nemesis waits at most before its next deed
  std::chrono::nanoseconds longest_rest;  // of a worker, between two acquires
};

// `kinds` changes only the kinds of the locks: they are drawn by dice of their own.
[[nodiscard]] Plan make_plan(std::uint64_t seed, Dice& dice, Kinds kinds);

}  // namespace dlock::torture::simulation

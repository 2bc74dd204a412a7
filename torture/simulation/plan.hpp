// What a seed makes of a simulation, and what every simulation has in common.
#pragma once

#include <chrono>
#include <cstdint>

#include "backends/memory/memory_backend.hpp"
#include "torture/dice.hpp"

namespace dlock::torture::simulation {

inline constexpr std::chrono::nanoseconds response_timeout = std::chrono::milliseconds(500);
inline constexpr std::chrono::nanoseconds shortest_lease = std::chrono::milliseconds(50);
inline constexpr std::chrono::nanoseconds longest_lease = std::chrono::seconds(3);

struct Plan {
  memory::Strategy strategy;
  std::uint64_t processes;
  std::uint64_t workers;  // of each process
  std::uint64_t locks;
  std::chrono::nanoseconds latency;       // of a message, in good times
  bool direct;                            // in good times messages do not travel: the store is called
  std::int64_t slowest_clock;             // the clocks' rates are between this one
  std::int64_t fastest_clock;             // and this one
  std::chrono::nanoseconds chaos;         // how long things are broken
  bool lets_go;                           // of messages that are held, now and then
  std::chrono::nanoseconds calm;          // how long the nemesis waits at most before its next deed
  std::chrono::nanoseconds longest_rest;  // of a worker, between two acquires
};

[[nodiscard]] Plan make_plan(Dice& dice);

}  // namespace dlock::torture::simulation

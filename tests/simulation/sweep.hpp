// One operation of one process, with one of its requests spoiled: the sweep does that with each request of each
// operation, in each way.
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "tests/simulation/service.hpp"
#include "tests/simulation/world.hpp"

namespace dlock::simulation {

enum class Operation : std::uint8_t {
  connect,          // the first acquire of a process
  acquire,          // of a free lock
  try_acquire,      // the same, without waiting
  try_held,         // of a lock that another process holds
  wait,             // behind another process, which releases the lock
  wait_for_expiry,  // behind another process, which dies
  give_up,          // while another process holds the lock
  hold,             // for three leases, with renewals
  release,          // of a lease that was never renewed
  release_renewed,  // of one that is past its first period
  // Queries.
  inspect,     // a lock that another process holds
  list,        // the same
  break_lock,  // that another process holds
  be_broken,   // for three leases from when another process breaks our lock
  forget,      // an old lock that is free
};
inline constexpr std::array<std::string_view, 15> operation_names{
    "connect", "acquire",         "try_acquire", "try_held", "wait",       "wait_for_expiry", "give_up", "hold",
    "release", "release_renewed", "inspect",     "list",     "break_lock", "be_broken",       "forget"};

struct Spoiled {
  Operation operation{};
  SimulatedLock lock;
  Mode mode = Mode::exclusive;
  Fate fate{};
  std::size_t request = 0;  // which of the operation's requests, from 0
};

struct Outcome {
  std::vector<Event> history{};
  std::size_t requests = 0;  // of the operation
  bool supported = true;
  std::string problem{};  // with what the program was told; empty: none
};

[[nodiscard]] Outcome run(const Subject& subject, const Spoiled& spoiled);

}  // namespace dlock::simulation

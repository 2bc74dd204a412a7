// Kills a process that holds a lock while a client of this process waits for it.
#pragma once

#include <chrono>
#include <stop_token>

#include "bench/scenarios/runner.hpp"
#include "torture/rig/child_process.hpp"

namespace dlock::bench {

[[nodiscard]] std::chrono::nanoseconds time_of_recovery(const Capabilities& capabilities);

// Each round is one kill, and its only sample the time until the waiter gets the lock. Connects, and determines the
// lease that the service grants.
[[nodiscard]] Rounds recovery(const Target& target, const Plan& plan, const std::stop_token& stop);

// Waits until "dlock hold" has the lock and prints its token; false if a stop is requested before. Throws
// std::runtime_error, with the output of the process, if it ends, or if it takes longer than the limit.
[[nodiscard]] bool await_token(const rig::ChildProcess& holder, std::chrono::nanoseconds limit,
                               const std::stop_token& stop);

}  // namespace dlock::bench

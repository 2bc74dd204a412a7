// When a waiter in the queue sends its next request if no wake-up arrives. No I/O.
#pragma once

#include <chrono>

#include <dlock/spi/executor.hpp>

#include "backends/redis/requests/answers.hpp"

namespace dlock::redis {

struct CheckBasis {
  bool reachable = false;        // wake-ups reach the waiter, so that a check is only the safety net
  bool foreign_lockers = false;  // others may use the same key, and do not announce their releases
  bool watches_holder = false;   // this waiter was assigned to watch the holder
};

[[nodiscard]] TimePoint time_to_check(const AcquireAnswer& answer, const CheckBasis& basis, Executor& executor);

// When to check whether a lease that ends then has expired: soon after, with jitter.
[[nodiscard]] std::chrono::nanoseconds just_after(std::chrono::nanoseconds end, Executor& executor);

}  // namespace dlock::redis

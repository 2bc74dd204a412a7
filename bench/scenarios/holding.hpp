// One client holds many names while nothing else happens.
#pragma once

#include <chrono>
#include <cstddef>

#include "bench/scenarios/runner.hpp"

namespace dlock::bench {

// Of each round, without what it takes to acquire and release.
[[nodiscard]] std::chrono::nanoseconds time_to_hold(const Plan& plan);

// The window of a round has its length and the processor time.
[[nodiscard]] Rounds holding(Target& target, const Plan& plan, std::size_t names);

}  // namespace dlock::bench

// One otherwise idle client holds many names.
#pragma once

#include <chrono>
#include <cstddef>

#include "bench/scenarios/runner.hpp"

namespace dlock::bench {

// How long each round takes, without acquiring and releasing.
[[nodiscard]] std::chrono::nanoseconds time_to_hold(const Plan& plan);

// The window of a round has its length and the processor time.
[[nodiscard]] Rounds holding(Target& target, const Plan& plan, std::size_t names);

}  // namespace dlock::bench

// A sleep that a stop ends.
#pragma once

#include <chrono>
#include <stop_token>

namespace dlock::rig {

// False: a stop was requested, before or meanwhile.
bool pause(std::chrono::nanoseconds length, const std::stop_token& stop);

}  // namespace dlock::rig

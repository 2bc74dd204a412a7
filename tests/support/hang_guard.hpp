// How long a test waits for something that must happen before it calls that a hang.
#pragma once

#include <chrono>

namespace dlock::test {

inline constexpr std::chrono::seconds hang_guard{60};

}  // namespace dlock::test

// How long to wait for something that must happen before that is called a hang.
#pragma once

#include <chrono>

namespace dlock::rig {

inline constexpr std::chrono::seconds hang_guard{60};
inline constexpr int hang_guard_ms = std::chrono::milliseconds(hang_guard).count();  // for poll(2)

}  // namespace dlock::rig

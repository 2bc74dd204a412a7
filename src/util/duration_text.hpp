// Durations for people. parse_duration(), the inverse, is public: dlock/spi/url.hpp.
#pragma once

#include <chrono>
#include <string>

namespace dlock::util {

// In the largest unit that shows it exactly: "30s", "1500ms", "forever".
[[nodiscard]] std::string to_text(std::chrono::nanoseconds duration);

}  // namespace dlock::util

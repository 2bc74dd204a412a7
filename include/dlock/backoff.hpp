// How long to wait before the next attempt: doubles from 20 ms to the longest, at random in the upper half.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

#include <dlock/executor.hpp>

namespace dlock::util {

// At random in [from, to).
[[nodiscard]] inline std::chrono::nanoseconds between(std::chrono::nanoseconds from, std::chrono::nanoseconds to,
                                                      Executor& executor) {
  if (to <= from) return from;
  return from + std::chrono::nanoseconds(executor.random() % static_cast<std::uint64_t>((to - from).count()));
}

class Backoff {
 public:
  explicit Backoff(std::chrono::nanoseconds longest) noexcept : longest_(longest) {}

  [[nodiscard]] std::chrono::nanoseconds next(Executor& executor) {
    const auto at_most = next_;
    next_ = std::min(2 * next_, longest_);
    return between(at_most / 2, at_most, executor);
  }
  void reset() noexcept { next_ = first; }

 private:
  static constexpr std::chrono::nanoseconds first = std::chrono::milliseconds(20);

  std::chrono::nanoseconds longest_;
  std::chrono::nanoseconds next_ = first;
};

}  // namespace dlock::util

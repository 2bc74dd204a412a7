// How long to wait before the next attempt: doubles from 20 ms to 1 s, at random in the upper half.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

#include <dlock/executor.hpp>

namespace dlock::postgres {

// At random in [from, to).
[[nodiscard]] inline std::chrono::nanoseconds between(std::chrono::nanoseconds from, std::chrono::nanoseconds to,
                                                      Executor& executor) {
  if (to <= from) return from;
  return from + std::chrono::nanoseconds(executor.random() % static_cast<std::uint64_t>((to - from).count()));
}

class Backoff {
 public:
  [[nodiscard]] std::chrono::nanoseconds next(Executor& executor) {
    const auto longest = next_;
    next_ = std::min<std::chrono::nanoseconds>(2 * next_, std::chrono::seconds(1));
    return between(longest / 2, longest, executor);
  }
  void reset() noexcept { next_ = std::chrono::milliseconds(20); }

 private:
  std::chrono::nanoseconds next_ = std::chrono::milliseconds(20);
};

}  // namespace dlock::postgres

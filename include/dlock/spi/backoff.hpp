// How long to wait before the next attempt. For backend authors.
//
//   dlock::Backoff backoff{std::chrono::seconds(1)};
//   timer.arm(saturating_add(executor.now(), backoff.next(executor)), [this] { try_again(); });
//   ...
//   backoff.reset();  // it worked
#pragma once

#include <chrono>
#include <cstdint>

#include <dlock/spi/executor.hpp>

namespace dlock {

// A random duration in [from, to), or `from` if that range is empty.
[[nodiscard]] inline std::chrono::nanoseconds random_between(std::chrono::nanoseconds from, std::chrono::nanoseconds to,
                                                             Executor& executor) {
  if (to <= from) return from;
  return from + std::chrono::nanoseconds(executor.random() % static_cast<std::uint64_t>((to - from).count()));
}

// Exponential back-off with jitter: the pause doubles from the first up to the longest, and is random in the upper
// half. In tasks only.
class Backoff {
 public:
  explicit Backoff(std::chrono::nanoseconds longest,
                   std::chrono::nanoseconds first = std::chrono::milliseconds(20)) noexcept
      : first_(first), longest_(longest) {}

  // The pause before the next attempt; the next one is twice as long.
  [[nodiscard]] std::chrono::nanoseconds next(Executor& executor) {
    const auto at_most = next_;
    next_ = next_ > longest_ / 2 ? longest_ : 2 * next_;
    return random_between(at_most / 2, at_most, executor);
  }
  void reset() noexcept { next_ = first_; }

 private:
  std::chrono::nanoseconds first_;
  std::chrono::nanoseconds longest_;
  std::chrono::nanoseconds next_ = first_;
};

}  // namespace dlock

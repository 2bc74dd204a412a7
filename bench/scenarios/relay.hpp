// Shared by the contenders for one lock: when each of them held it, and how long the others have waited.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <stop_token>
#include <vector>

#include "bench/measure/samples.hpp"

namespace dlock::bench {

// Any thread.
class Relay {
 public:
  explicit Relay(std::size_t contenders) : waiting_since_(contenders) {}

  // Call these in this order, for one contender, with the time read before the call, which may wait for the mutex.

  void ask(std::size_t contender, Clock::time_point now);
  // The contender has the lock: the time since the last holder began its release; nullopt: the first time.
  [[nodiscard]] std::optional<Clock::duration> take(std::size_t contender, Clock::time_point now);
  // It is about to release. Returns the number of the turn that ends.
  [[nodiscard]] std::uint64_t let_go(Clock::time_point now);
  // Waits until another contender has had the lock after that turn, or a stop is requested, so that the releasing
  // contender does not overtake those that wait.
  void await_successor(std::uint64_t turn, const std::stop_token& stop);

  // The longest of the waits that ended since the last call, and of those that continue.
  [[nodiscard]] Clock::duration take_longest_wait(Clock::time_point now);

 private:
  std::mutex mutex_;  // guards the following
  std::condition_variable_any changed_;
  std::uint64_t turns_ = 0;  // that have begun
  std::optional<Clock::time_point> released_;
  std::vector<std::optional<Clock::time_point>> waiting_since_;  // of each contender
  Clock::duration longest_wait_{0};
};

}  // namespace dlock::bench

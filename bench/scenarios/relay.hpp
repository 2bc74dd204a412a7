// Shared by the contenders for one lock: when each of them had it, and for how long the others have waited.
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

  // One contender, in this order. The time is given by the caller, who reads it before it waits for the others here.

  void ask(std::size_t contender, Clock::time_point now);
  // It has the lock: how long ago the last holder sent its release. Nothing the first time.
  [[nodiscard]] std::optional<Clock::duration> take(std::size_t contender, Clock::time_point now);
  // It is about to send its release. The number of the turn that ends.
  [[nodiscard]] std::uint64_t let_go(Clock::time_point now);
  // Until another one has had the lock after that turn, or a stop is requested. So the one that lets go does not take
  // the lock right back from those who were there before.
  void await_successor(std::uint64_t turn, const std::stop_token& stop);

  // The longest of the waits that ended since the last call, and of those that go on.
  [[nodiscard]] Clock::duration take_longest_wait(Clock::time_point now);

 private:
  std::mutex mutex_;  // guards what follows
  std::condition_variable_any changed_;
  std::uint64_t turns_ = 0;  // that have begun
  std::optional<Clock::time_point> released_;
  std::vector<std::optional<Clock::time_point>> waiting_since_;  // of each contender
  Clock::duration longest_wait_{0};
};

}  // namespace dlock::bench

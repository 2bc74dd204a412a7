#include "bench/scenarios/relay.hpp"

#include <algorithm>
#include <utility>

namespace dlock::bench {

void Relay::ask(std::size_t contender, Clock::time_point now) {
  const std::scoped_lock lock(mutex_);
  waiting_since_[contender] = now;
}

std::optional<Clock::duration> Relay::take(std::size_t contender, Clock::time_point now) {
  const std::scoped_lock lock(mutex_);
  ++turns_;
  changed_.notify_all();
  if (const auto since = std::exchange(waiting_since_[contender], std::nullopt)) {
    longest_wait_ = std::max(longest_wait_, now - *since);
  }
  if (!released_) return std::nullopt;
  return now - *released_;
}

std::uint64_t Relay::let_go(Clock::time_point now) {
  const std::scoped_lock lock(mutex_);
  released_ = now;
  return turns_;
}

void Relay::await_successor(std::uint64_t turn, const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  (void)changed_.wait(lock, stop, [&] { return turns_ > turn; });
}

Clock::duration Relay::take_longest_wait(Clock::time_point now) {
  const std::scoped_lock lock(mutex_);
  Clock::duration longest = std::exchange(longest_wait_, Clock::duration(0));
  for (const auto& since : waiting_since_) {
    if (since) longest = std::max(longest, now - *since);
  }
  return longest;
}

}  // namespace dlock::bench

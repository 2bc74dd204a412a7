// Timers in the order of their deadlines. No I/O, no clock of its own, not thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <unordered_map>
#include <utility>

#include <dlock/executor.hpp>

namespace dlock::engine {

class TimerQueue {
 public:
  using Id = Executor::TimerId;

  [[nodiscard]] Id add(TimePoint at, Executor::Task task);
  void cancel(Id id) noexcept;

  // Removes and returns the earliest task that is due; equal deadlines in the order they were added.
  [[nodiscard]] std::optional<Executor::Task> pop_due(TimePoint now);
  [[nodiscard]] std::optional<TimePoint> next() const noexcept;
  [[nodiscard]] std::size_t size() const noexcept { return by_time_.size(); }

 private:
  using Key = std::pair<TimePoint, Id>;
  std::map<Key, Executor::Task> by_time_;
  std::unordered_map<Id, TimePoint> time_of_;
  Id next_id_ = 1;
};

}  // namespace dlock::engine

// Timers in the order of their deadlines. No I/O, no clock of its own, not thread-safe.
#pragma once

#include <cstddef>
#include <optional>
#include <unordered_map>
#include <vector>

#include <dlock/spi/executor.hpp>

namespace dlock::engine {

// A table of tasks, and a binary heap of their deadlines. A cancelled timer leaves the table at once, and the heap when
// it comes to the top, or when half of the heap is cancelled.
class TimerQueue {
 public:
  using Id = Executor::TimerId;

  [[nodiscard]] Id add(TimePoint at, Executor::Task task);
  void cancel(Id id) noexcept;

  // Removes and returns the earliest task that is due; equal deadlines in the order they were added.
  [[nodiscard]] std::optional<Executor::Task> pop_due(TimePoint now);
  [[nodiscard]] std::optional<TimePoint> next() const noexcept;
  [[nodiscard]] std::size_t size() const noexcept { return tasks_.size(); }

 private:
  struct Deadline {
    TimePoint at;
    Id id;                                                                // in the order of the calls of add()
    [[nodiscard]] bool operator<(const Deadline& other) const noexcept {  // as std::push_heap wants it: latest first
      return at != other.at ? at > other.at : id > other.id;
    }
  };
  using Tasks = std::unordered_map<Id, Executor::Task>;

  [[nodiscard]] Tasks::node_type extract(Id id);

  Tasks tasks_;
  std::vector<Deadline> heap_;  // the top is in tasks_
  Id last_ = 0;
};

}  // namespace dlock::engine

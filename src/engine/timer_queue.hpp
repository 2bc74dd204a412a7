// Timers in the order of their deadlines. No I/O, no clock of its own, not thread-safe. Arming and cancelling allocate
// nothing once there is room for as many timers as are armed at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include <dlock/spi/executor.hpp>

namespace dlock::engine {

class TimerQueue {
 public:
  using Id = Executor::TimerId;

  [[nodiscard]] Id add(TimePoint at, Executor::Task task);
  void cancel(Id id) noexcept;

  // Removes and returns the earliest task that is due; equal deadlines in the order they were added.
  [[nodiscard]] std::optional<Executor::Task> pop_due(TimePoint now);
  [[nodiscard]] std::optional<TimePoint> next() const noexcept;
  [[nodiscard]] std::size_t size() const noexcept { return heap_.size(); }

 private:
  struct Slot {
    std::uint32_t use = 0;  // how often the slot was taken: part of the id, so that an old one finds nothing
    std::size_t place = 0;  // in heap_
    Executor::Task task;
  };
  struct Entry {
    TimePoint at;
    std::uint64_t number;  // in the order of the calls of add()
    std::uint32_t slot;

    [[nodiscard]] bool before(const Entry& other) const noexcept {
      return at != other.at ? at < other.at : number < other.number;
    }
  };

  void put(std::size_t place, const Entry& entry) noexcept;
  void sift_up(std::size_t place) noexcept;
  void sift_down(std::size_t place) noexcept;
  // Takes the entry out and answers its task.
  [[nodiscard]] Executor::Task remove(std::size_t place) noexcept;

  std::vector<Slot> slots_;
  std::vector<std::uint32_t> free_slots_;  // has room for all of them
  std::vector<Entry> heap_;                // binary, the earliest first
  std::uint64_t added_ = 0;
};

}  // namespace dlock::engine

#include "engine/timer_queue.hpp"

#include <utility>

namespace dlock::engine {

TimerQueue::Id TimerQueue::add(TimePoint at, Executor::Task task) {
  heap_.reserve(heap_.size() + 1 > heap_.capacity() ? 2 * heap_.capacity() + 1 : 0);
  if (free_slots_.empty()) {
    const std::size_t slots = slots_.size() + 1;
    if (slots > free_slots_.capacity()) free_slots_.reserve(2 * slots);
    slots_.emplace_back();
    free_slots_.push_back(static_cast<std::uint32_t>(slots - 1));
  }
  // Nothing throws from here on.
  const std::uint32_t slot = free_slots_.back();
  free_slots_.pop_back();
  slots_[slot].task = std::move(task);
  ++slots_[slot].use;
  heap_.emplace_back();
  put(heap_.size() - 1, {at, added_++, slot});
  sift_up(heap_.size() - 1);
  return (Id{slots_[slot].use} << 32U) | (slot + 1U);
}

void TimerQueue::cancel(Id id) noexcept {
  const auto slot = static_cast<std::uint32_t>(id & 0xffff'ffffU);
  if (slot == 0 || slot > slots_.size()) return;
  const Slot& found = slots_[slot - 1];
  // An id whose timer has run or was cancelled: the slot is free, or another timer has it.
  if (found.use != id >> 32U || found.place >= heap_.size() || heap_[found.place].slot != slot - 1) return;
  const auto ends_here = remove(found.place);
}

std::optional<Executor::Task> TimerQueue::pop_due(TimePoint now) {
  if (heap_.empty() || heap_.front().at > now) return std::nullopt;
  return remove(0);
}

std::optional<TimePoint> TimerQueue::next() const noexcept {
  if (heap_.empty()) return std::nullopt;
  return heap_.front().at;
}

Executor::Task TimerQueue::remove(std::size_t place) noexcept {
  const std::uint32_t slot = heap_[place].slot;
  Executor::Task task = std::move(slots_[slot].task);
  free_slots_.push_back(slot);
  const Entry last = heap_.back();
  heap_.pop_back();
  if (place < heap_.size()) {
    put(place, last);
    sift_up(place);
    sift_down(slots_[last.slot].place);
  }
  return task;
}

void TimerQueue::put(std::size_t place, const Entry& entry) noexcept {
  heap_[place] = entry;
  slots_[entry.slot].place = place;
}

void TimerQueue::sift_up(std::size_t place) noexcept {
  const Entry moving = heap_[place];
  for (; place > 0 && moving.before(heap_[(place - 1) / 2]); place = (place - 1) / 2) {
    put(place, heap_[(place - 1) / 2]);
  }
  put(place, moving);
}

void TimerQueue::sift_down(std::size_t place) noexcept {
  const Entry moving = heap_[place];
  while (true) {
    std::size_t child = 2 * place + 1;
    if (child >= heap_.size()) break;
    if (child + 1 < heap_.size() && heap_[child + 1].before(heap_[child])) ++child;
    if (!heap_[child].before(moving)) break;
    put(place, heap_[child]);
    place = child;
  }
  put(place, moving);
}

}  // namespace dlock::engine

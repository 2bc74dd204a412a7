#include "engine/timer_queue.hpp"

namespace dlock::engine {

TimerQueue::Id TimerQueue::add(TimePoint at, Executor::Task task) {
  const Id id = next_id_++;
  by_time_.emplace(Key(at, id), std::move(task));
  time_of_.emplace(id, at);
  return id;
}

void TimerQueue::cancel(Id id) noexcept {
  const auto found = time_of_.find(id);
  if (found == time_of_.end()) return;
  by_time_.erase(Key(found->second, id));
  time_of_.erase(found);
}

std::optional<Executor::Task> TimerQueue::pop_due(TimePoint now) {
  const auto first = by_time_.begin();
  if (first == by_time_.end() || first->first.first > now) return std::nullopt;
  Executor::Task task = std::move(first->second);
  time_of_.erase(first->first.second);
  by_time_.erase(first);
  return task;
}

std::optional<TimePoint> TimerQueue::next() const noexcept {
  if (by_time_.empty()) return std::nullopt;
  return by_time_.begin()->first.first;
}

}  // namespace dlock::engine

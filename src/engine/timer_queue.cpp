#include "engine/timer_queue.hpp"

#include <algorithm>
#include <utility>

namespace dlock::engine {

TimerQueue::Id TimerQueue::add(TimePoint at, Executor::Task task) {
  tasks_.emplace(++last_, std::move(task));
  heap_.push_back({at, last_});
  std::push_heap(heap_.begin(), heap_.end());
  return last_;
}

void TimerQueue::cancel(Id id) noexcept {
  const auto cancelled = extract(id);  // its captures may use this queue when they are destroyed
}

std::optional<Executor::Task> TimerQueue::pop_due(TimePoint now) {
  if (heap_.empty() || heap_.front().at > now) return std::nullopt;
  return std::move(extract(heap_.front().id).mapped());
}

std::optional<TimePoint> TimerQueue::next() const noexcept {
  if (heap_.empty()) return std::nullopt;
  return heap_.front().at;
}

TimerQueue::Tasks::node_type TimerQueue::extract(Id id) {
  constexpr std::size_t few = 64;
  auto extracted = tasks_.extract(id);
  const auto is_over = [this](const Deadline& deadline) { return !tasks_.contains(deadline.id); };
  if (heap_.size() > few && heap_.size() / 2 > tasks_.size()) {
    std::erase_if(heap_, is_over);
    std::make_heap(heap_.begin(), heap_.end());
  }
  while (!heap_.empty() && is_over(heap_.front())) {
    std::pop_heap(heap_.begin(), heap_.end());
    heap_.pop_back();
  }
  return extracted;
}

}  // namespace dlock::engine

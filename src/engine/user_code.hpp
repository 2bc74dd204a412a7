// Queues of code of the program that waits to run, each with its own rule. Not thread-safe.
//
//   queue       | runs                               | when many wait
//   ------------+------------------------------------+------------------------------------------------
//   loss_signal | before everything else             | all are kept: work goes on without the lock
//   completion  | in turn with events                | all are kept: a caller waits for each
//   event       | in turn with completions           | most_events are kept, further ones are refused
//
// Each is in the order of the calls.
#pragma once

#include <cstddef>
#include <deque>
#include <utility>

#include <dlock/spi/task.hpp>

namespace dlock::engine {

enum class UserCode {
  loss_signal,  // the callbacks of lost()
  completion,   // a handler that was given with a call
  event,        // for an observer
};

class UserCodeQueue {
 public:
  // Some megabytes. 10,000 locks that are taken or renewed in one burst are fewer.
  static constexpr std::size_t most_events = 16'384;

  // False: refused, and not moved from.
  [[nodiscard]] bool push(UserCode kind, Task&& code) {
    if (kind == UserCode::event && events_.size() >= most_events) return false;
    (kind == UserCode::loss_signal  ? loss_signals_
     : kind == UserCode::completion ? completions_
                                    : events_)
        .push_back(std::move(code));
    return true;
  }

  [[nodiscard]] bool empty() const noexcept { return loss_signals_.empty() && completions_.empty() && events_.empty(); }

  // The next to run; not when empty().
  [[nodiscard]] Task pop() {
    if (!loss_signals_.empty()) return pop_from(loss_signals_);
    event_is_next_ = !events_.empty() && (event_is_next_ || completions_.empty());
    return pop_from(std::exchange(event_is_next_, !event_is_next_) ? events_ : completions_);
  }

 private:
  static Task pop_from(std::deque<Task>& queue) {
    Task code = std::move(queue.front());
    queue.pop_front();
    return code;
  }

  std::deque<Task> loss_signals_;
  std::deque<Task> completions_;
  std::deque<Task> events_;
  bool event_is_next_ = false;
};

}  // namespace dlock::engine

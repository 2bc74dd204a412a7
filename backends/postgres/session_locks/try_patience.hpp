// A try that is put again after trouble, for as long as it may last.
#pragma once

#include <chrono>
#include <functional>
#include <utility>

#include <dlock/duration.hpp>
#include <dlock/spi/backend.hpp>

namespace dlock::postgres {

// Ends it in time to say what the trouble was. The caller would otherwise only hear that no answer came.
class TryPatience {
 public:
  TryPatience(Executor& executor, std::chrono::nanoseconds response_timeout)
      : until_(saturating_add(executor.now(), response_timeout)),
        tell_at_(saturating_add(executor.now(), response_timeout / 10 * 9)),
        timer_(executor) {}

  [[nodiscard]] TimePoint until() const noexcept { return until_; }

  // The end gets what was noted last.
  void note(Failure why, std::function<void(const Failure&)> end) {
    why_ = std::move(why);
    if (!timer_.armed()) {
      timer_.arm(tell_at_, [this, end = std::move(end)] { end(why_); });
    }
  }
  void over() { timer_.disarm(); }

 private:
  TimePoint until_;
  TimePoint tell_at_;
  Failure why_;
  Timer timer_;
};

}  // namespace dlock::postgres

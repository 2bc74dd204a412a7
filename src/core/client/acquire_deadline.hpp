// Decides when an acquire ends and how it is reported. No I/O, no clock: time and news go in, the verdict comes out.
#pragma once

#include <algorithm>
#include <chrono>
#include <optional>
#include <string>
#include <utility>

#include <dlock/clock.hpp>
#include <dlock/duration.hpp>
#include <dlock/error.hpp>

namespace dlock::detail {

// The wait ends at its deadline; if the service has not answered by then, at its first answer, but no later than the
// response timeout after the start. Reports the last known state: another lease holds the lock (timed_out), or the
// failure of the backend (such as unavailable or ambiguous).
class AcquireDeadline {
 public:
  AcquireDeadline(TimePoint start, std::chrono::nanoseconds wait, std::chrono::nanoseconds response_timeout) noexcept
      : deadline_(saturating_add(start, wait)),
        first_answer_by_(std::max(deadline_, saturating_add(start, response_timeout))) {}

  void busy() noexcept {
    answered_ = true;
    problem_.reset();
  }
  // Returns whether the failure differs from the last one.
  bool unreachable(Failure why) {
    const bool news = !problem_ || problem_->code != why.code || problem_->detail != why.detail;
    answered_ = true;
    problem_ = std::move(why);
    return news;
  }

  // When to check over() again; TimePoint::max() for never.
  [[nodiscard]] TimePoint wake() const noexcept { return answered_ ? deadline_ : first_answer_by_; }
  [[nodiscard]] bool over(TimePoint now) const noexcept { return now >= wake(); }

  // Why the wait for a lock, described, ended. Call when over().
  [[nodiscard]] Failure verdict(const std::string& lock) const {
    if (problem_) return *problem_;
    if (answered_) return {errc::timed_out, lock + " is already held"};
    return {errc::unavailable, "the service did not answer about " + lock + " in time"};
  }
  [[nodiscard]] bool was_busy() const noexcept { return answered_ && !problem_; }

 private:
  TimePoint deadline_;
  TimePoint first_answer_by_;
  bool answered_ = false;
  std::optional<Failure> problem_;
};

}  // namespace dlock::detail

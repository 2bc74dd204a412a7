// Decides when a lease is renewed and when it is given up. No I/O, no clock, no threads: time goes in, the next action
// comes out.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

#include <dlock/clock.hpp>

namespace dlock::detail {

// The first renewal is due about a third of the lease after the grant, the next about a third after the last one. A
// renewal that failed is retried soon, several times before the end, or seldom if a retry hardly helps. The lease is
// given up a little before its end, because the timer that notifies the program needs time to run, too. From then on
// nothing extends it.
class RenewalSchedule {
 public:
  enum class Action { none, renew, lose };
  struct Step {
    Action action = Action::none;
    std::optional<TimePoint> wake = std::nullopt;         // call due() then, unless there is other news before
    std::optional<TimePoint> valid_until = std::nullopt;  // the lease's new end
  };
  enum class Retry { soon, seldom };

  // granted: when the lease began to count, for the rhythm of renewals. random: seeds the jitter. renew: false if the
  // lease is never renewed.
  RenewalSchedule(std::chrono::nanoseconds lease, bool renew, TimePoint granted, TimePoint valid_until,
                  std::uint64_t random) noexcept;

  // Each of these gets the present end of the lease. After Action::lose, no more calls.
  // The first wake-up.
  [[nodiscard]] Step start(TimePoint now, TimePoint valid_until) const noexcept {
    return wake_at_next(now, valid_until);
  }
  // It is time. After Action::renew, one of the next two follows.
  [[nodiscard]] Step due(TimePoint now, TimePoint valid_until) noexcept;
  [[nodiscard]] Step renewed(TimePoint now, TimePoint valid_until, TimePoint renewed_until) noexcept;
  [[nodiscard]] Step renewal_failed(TimePoint now, TimePoint valid_until, Retry retry = Retry::soon) noexcept;
  // The service confirmed the lease by itself.
  [[nodiscard]] Step extended(TimePoint now, TimePoint valid_until, TimePoint extended_until) const noexcept;
  // The service was away and may have forgotten the lease, so a renewal is due soon.
  [[nodiscard]] Step reconnected(TimePoint now, TimePoint valid_until) noexcept;

 private:
  [[nodiscard]] TimePoint loss_time(TimePoint valid_until) const noexcept;
  [[nodiscard]] Step wake_at_next(TimePoint now, TimePoint valid_until) const noexcept;
  void plan_renewal(TimePoint from, TimePoint valid_until) noexcept;
  [[nodiscard]] std::chrono::nanoseconds jittered(std::chrono::nanoseconds d) noexcept;

  std::chrono::nanoseconds lease_;
  bool renew_;
  TimePoint next_renewal_ = TimePoint::max();
  std::uint64_t random_;
  bool renewing_ = false;
};

}  // namespace dlock::detail

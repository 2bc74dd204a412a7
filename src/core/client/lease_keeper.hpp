// Decides when a held lease is renewed and when it is lost. No I/O, no clock, no threads: time goes in, the next action
// comes out.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

#include <dlock/clock.hpp>

namespace dlock::detail {

// About a third of the lease after it was granted or renewed the keeper asks for a renewal. A failed one is retried
// quickly, several times before the deadline, or seldom where trying again hardly helps. The lease is given up a little
// before valid_until, because the timer that tells the program needs time to run, too. Past that nothing brings it
// back.
class LeaseKeeper {
 public:
  enum class Action { none, renew, lose };
  struct Step {
    Action action = Action::none;
    std::optional<TimePoint> wake;  // call due() then, unless something else happens before
  };
  enum class Retry { soon, seldom };
  struct Terms {
    std::chrono::nanoseconds lease{};
    bool renew = true;
  };

  // `granted` is when the lease began to count, for the rhythm of renewals; `random` seeds the jitter.
  LeaseKeeper(Terms terms, TimePoint granted, TimePoint valid_until, std::uint64_t random) noexcept;

  // The first wake-up.
  [[nodiscard]] Step start() const noexcept;
  // The time asked for has come. After Action::renew, one of the three below follows.
  [[nodiscard]] Step due(TimePoint now) noexcept;
  [[nodiscard]] Step renewed(TimePoint now, TimePoint valid_until) noexcept;
  [[nodiscard]] Step renewal_failed(TimePoint now, Retry retry = Retry::soon) noexcept;
  // The session was confirmed; not by a renewal of ours.
  [[nodiscard]] Step extended(TimePoint now, TimePoint valid_until) noexcept;

  // The service was away and may have forgotten the lease: a renewal soon will tell.
  [[nodiscard]] Step reconnected(TimePoint now) noexcept;

  [[nodiscard]] TimePoint valid_until() const noexcept { return valid_until_; }
  [[nodiscard]] bool lost() const noexcept { return lost_; }

 private:
  [[nodiscard]] TimePoint loss_time() const noexcept;
  [[nodiscard]] Step wake_at_next(TimePoint now) noexcept;
  void plan_renewal(TimePoint from) noexcept;
  [[nodiscard]] std::chrono::nanoseconds jittered(std::chrono::nanoseconds d) noexcept;

  Terms terms_;
  TimePoint valid_until_;
  TimePoint next_renewal_ = TimePoint::max();
  std::uint64_t random_;
  bool renewing_ = false;
  bool lost_ = false;
};

}  // namespace dlock::detail

// Decides when a command must be told to end, and when it must be made to, because its lock runs out or is gone.
// Does no I/O: the caller says what time it is and how the lease stands, and does what the answer says.
//
//   state       | lease in order                 | lease runs out or is lost
//   ------------+--------------------------------+-----------------------------------------------------------------
//   running     | nothing; look again when only  | terminate, then kill after the grace, and at valid_until at the
//               | the notice is left             | latest; kill at once if there is no time left for a notice
//   terminating | stays terminating: a command   | kill when its time is up
//               | that was told to end is ending |
//   killed      | nothing                        | nothing
//
// With a lease that runs out by time, the notice is given before the end, so that the command is gone when the service
// may let somebody else in. A renewal has normally come long before that. A lock that is taken away gives no notice.
#pragma once

#include <dlock/clock.hpp>
#include <dlock/duration.hpp>

#include <chrono>

namespace dlock::cli {

class LeaseWatch {
 public:
  enum class Action { none, terminate, kill };

  struct Step {
    Action action;
    // Look again at this time, unless something happens before; max(): nothing to look for.
    TimePoint wake;
    // From when the command must not run any more; max(): no such time is known.
    TimePoint deadline;
  };

  // `grace` is the time between terminate and kill. Never more than a third of the lease as it stands at the beginning
  // is used as notice: renewal comes after a third, and deserves as long again to succeed.
  LeaseWatch(std::chrono::nanoseconds grace, TimePoint now, TimePoint valid_until) noexcept;

  [[nodiscard]] Step step(TimePoint now, TimePoint valid_until, bool lost) noexcept;

 private:
  enum class State { running, terminating, killed };

  [[nodiscard]] Step begin_end(TimePoint now, TimePoint valid_until) noexcept;
  [[nodiscard]] Step kill(TimePoint now) noexcept;

  std::chrono::nanoseconds grace_;
  std::chrono::nanoseconds notice_;
  State state_ = State::running;
  TimePoint kill_at_ = TimePoint::max();
};

}  // namespace dlock::cli

// Decides when a command has to be asked to end, and when it has to be killed, because its lock expires or is lost. No
// I/O: the caller passes the time and the state of the lease, and carries out the answer.
//
//   state       | lease in order                 | lease runs out or is lost
//   ------------+--------------------------------+-----------------------------------------------------------------
//   running     | nothing; look again when half  | terminate, then kill after the grace, and at valid_until at the
//               | of the time to its end, or all | latest; kill at once if there is no time left for a notice
//               | but the notice, is over        |
//   terminating | stays terminating: a command   | kill when its time is up
//               | that was told to end is ending |
//   killed      | nothing                        | nothing
//
// If the lease expires by time, the command is asked to end before that, so that it is gone when the service may grant
// the lock again. Normally a renewal comes long before. A lock that is taken away leaves no time for a notice. The
// guardian, which acts on its own at the deadline, thus hears of a renewal long before the deadline that it knows.
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
    // Call step() again at this time, unless something happens before; max(): nothing to wait for.
    TimePoint wake;
    // The command must not run after this time; max(): no such time is known.
    TimePoint deadline;
  };

  // grace: the time between terminate and kill, at most a third of the lease as it is now: a renewal is due after a
  // third, and needs as long again to succeed.
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

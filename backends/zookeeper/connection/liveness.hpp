// Until when the nodes of a session are safe, by this client's clock alone. No I/O, no clock: times are arguments.
//
// The leader decides when a session ends, by what it knows of it. If a different server serves the session, the leader
// learns of its requests only every half tick, and a session timeout has at least two ticks, unless minSessionTimeout
// says otherwise. So an acknowledged write proves that the session was alive, but the leader may count from a write
// that was sent a quarter of the timeout earlier.
//
//   event                      | valid_until()                                  | expires_at()
//   ---------------------------+------------------------------------------------+------------------------------------
//   begin(requested)           | a timeout after `requested`                    | the same, but not before three
//                              |                                                | quarters of a timeout from now
//   acknowledged(sent)         | a timeout after the newest acknowledged write  | not before valid_until()
//                              | that was sent a quarter or more before `sent`  |
//   acknowledged() when over   | unchanged: nothing is brought back to life     | unchanged
//   end()                      | has passed                                     | has passed
#pragma once

#include <chrono>
#include <deque>

#include <dlock/spi/backend.hpp>

namespace dlock::zookeeper {

class Liveness {
 public:
  // A session with this timeout was granted by `now`. The leader made it after `requested`.
  void begin(TimePoint requested, TimePoint now, std::chrono::milliseconds timeout);
  // The ensemble acknowledged a write that was sent then.
  void acknowledged(TimePoint sent, TimePoint now);
  void end() { *this = {}; }

  // Until when the nodes are safe, whatever server fails.
  [[nodiscard]] TimePoint valid_until() const noexcept { return valid_until_; }
  // A suspended session may be re-established until then; later it is given up.
  [[nodiscard]] TimePoint expires_at() const noexcept { return expires_at_; }
  [[nodiscard]] bool is_over(TimePoint now) const noexcept { return now >= expires_at_; }
  // When the next heartbeat is due.
  [[nodiscard]] TimePoint probe_at() const noexcept { return saturating_add(last_sent_, probe_interval()); }
  [[nodiscard]] std::chrono::nanoseconds probe_interval() const noexcept { return timeout_ / 4; }
  // Zero: there is no session.
  [[nodiscard]] std::chrono::milliseconds timeout() const noexcept { return timeout_; }

 private:
  [[nodiscard]] std::chrono::milliseconds unknown_to_leader() const noexcept { return timeout_ / 4; }

  std::chrono::milliseconds timeout_{};
  TimePoint last_sent_ = TimePoint::min();
  std::deque<TimePoint> unsafe_;  // acknowledged writes that the leader may not know of yet
  TimePoint valid_until_ = TimePoint::min();
  TimePoint expires_at_ = TimePoint::min();
};

}  // namespace dlock::zookeeper

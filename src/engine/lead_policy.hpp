// Learns how callers use an event loop, and decides which thread should run it. No I/O, no clock; not thread-safe.
#pragma once

#include <algorithm>
#include <chrono>

#include "util/event.hpp"

namespace dlock::engine {

// A caller that waits alone should run the loop itself: the answer then arrives on the thread that wants it. If several
// wait, the loop's own thread runs it for all. Earlier callers show whether callers come alone:
//
//   seen                                                   | then the own thread
//   -------------------------------------------------------+-------------------------------------------------------
//   several callers wait at once                           | keeps the lead
//   `alone_enough` callers, one after the other, waited     | leaves the lead when the last of them has its answer,
//   briefly while the own thread led                       | for as long as the next comes within `longest_gap`
class LeadPolicy {
 public:
  using Clock = std::chrono::steady_clock;

  // A caller that waits for longer sleeps, and leaves the loop to the loop's own thread.
  static constexpr std::chrono::nanoseconds longest_lead = std::chrono::milliseconds(2);
  // How long the loop may be without a leader between two callers, and so how long it may delay events.
  static constexpr std::chrono::nanoseconds longest_gap = std::chrono::milliseconds(1);

  // A caller begins to wait for this event.
  void came(const util::Event& event) noexcept {
    ++waiting_;
    only_ = waiting_ == 1 ? &event : nullptr;
    if (waiting_ > 1) came_alone_ = 0;
  }
  // A caller that had waited since `since` continues; `led`: it ran the loop meanwhile.
  void went(bool led, Clock::time_point since, Clock::time_point now) noexcept {
    --waiting_;
    only_ = nullptr;
    last_went_ = now;
    const bool briefly = !led && now - since < longest_lead;
    if (briefly && waiting_ == 0) came_alone_ = std::min(came_alone_ + 1, alone_enough);
  }

  [[nodiscard]] int waiting() const noexcept { return waiting_; }

  // Whether the own thread should leave the lead: callers come one by one, and no caller is left that sleeps until this
  // thread has read an answer.
  [[nodiscard]] bool own_thread_may_leave(Clock::time_point now) const noexcept {
    if (came_alone_ < alone_enough) return false;
    if (waiting_ == 0) return now - last_went_ < longest_gap;
    return only_ != nullptr && only_->is_set();
  }

 private:
  static constexpr int alone_enough = 3;

  int waiting_ = 0;
  const util::Event* only_ = nullptr;  // the event of a caller that came alone
  int came_alone_ = 0;                 // the number of callers that came and went one by one
  Clock::time_point last_went_;
};

// How long a thread polls for an answer before it sleeps: to sleep and to be woken takes longer than an early answer.
// Earlier waits show whether to expect one (as in KVM's halt polling of idle processors); one late answer among many
// does not end the polling.
class AnswerPolling {
 public:
  [[nodiscard]] std::chrono::nanoseconds duration() const noexcept { return duration_; }

  void waited(std::chrono::nanoseconds time) noexcept {
    if (time > longest) {
      duration_ = duration_ / 2 < shortest ? std::chrono::nanoseconds(0) : duration_ / 2;
    } else if (time > duration_) {
      duration_ = std::clamp(duration_ * 2, shortest, longest);
    }
  }

 private:
  static constexpr std::chrono::nanoseconds shortest = std::chrono::microseconds(10);
  static constexpr std::chrono::nanoseconds longest = std::chrono::microseconds(100);
  std::chrono::nanoseconds duration_{0};
};

}  // namespace dlock::engine

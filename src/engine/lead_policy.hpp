// Learns how callers use an event loop, and decides from that who had better run it. No I/O, no clock; not thread-safe.
#pragma once

#include <algorithm>
#include <chrono>

#include "util/event.hpp"

namespace dlock::engine {

// A caller that waits alone had better run the loop itself: the answer then comes to the thread that wants it. As soon
// as several wait, the loop's own thread does it for all. Whether callers come alone is learnt from those before:
//
//   seen                                                   | then the own thread
//   -------------------------------------------------------+-------------------------------------------------------
//   several callers wait at once                           | keeps the lead
//   `alone_enough` callers, one after the other, waited     | leaves the lead when the last of them has its answer,
//   briefly while the own thread led                       | for as long as the next comes within `longest_gap`
class LeadPolicy {
 public:
  using Clock = std::chrono::steady_clock;

  // A caller that waits for longer had better sleep, and leave the loop to a thread that is there for it.
  static constexpr std::chrono::nanoseconds longest_lead = std::chrono::milliseconds(2);
  // How long the loop may be without a leader, between callers that lead in turn: events meanwhile are delayed by that
  // much.
  static constexpr std::chrono::nanoseconds longest_gap = std::chrono::microseconds(500);

  // A caller begins to wait for this event.
  void came(const util::Event& event) noexcept {
    ++waiting_;
    only_ = waiting_ == 1 ? &event : nullptr;
    if (waiting_ > 1) came_alone_ = 0;
  }
  // A caller that had waited since `since` goes on; `led`: it ran the loop meanwhile.
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
  const util::Event* only_ = nullptr;  // what a caller waits for that came alone
  int came_alone_ = 0;                 // as many as came and went one by one
  Clock::time_point last_went_;
};

// For how long an answer is polled for before the thread sleeps: falling asleep and being woken takes longer than an
// answer that comes soon. Whether to expect one is learnt from the waits before, as a hypervisor does it with idle
// processors (KVM's halt polling). One late answer among many is no reason to stop.
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

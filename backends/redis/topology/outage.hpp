// While the server refuses what waiters ask, or cannot be asked: one of a client's waiters asks in place of all, less
// and less often. Says who may ask, and when an outage has ended. No I/O.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <utility>

#include <dlock/error.hpp>
#include <dlock/spi/backoff.hpp>
#include <dlock/spi/executor.hpp>

#include "backends/redis/timing.hpp"

namespace dlock::redis {

// In tasks only.
class Outage {
 public:
  // over: called when an outage has ended. everyone: all waiters should ask again now. Otherwise the last outage is so
  // recent that the server may be failing by turns, and every waiter should ask in its own time.
  Outage(Executor& executor, std::function<void(bool everyone)> over) : executor_(executor), over_(std::move(over)) {}

  // Whether a waiter may ask now. In an outage, this takes the turn.
  [[nodiscard]] bool may_ask() {
    if (!why_) return true;
    if (executor_.now() < next_turn_) return false;
    plan();
    return true;
  }
  // Why a waiter may not ask. Only after may_ask() said so.
  [[nodiscard]] const Failure& why() const noexcept { return *why_; }

  // A question failed, or the connection broke. Ignored where that says nothing about other questions.
  void failed(Failure why) {
    if (why.code != errc::unavailable && why.code != errc::ambiguous) return;
    const bool begins = !why_;
    why_ = std::move(why);
    const TimePoint now = executor_.now();
    if (begins && now >= saturating_add(over_since_, proof_time)) backoff_.reset();
    if (begins || now >= next_turn_) plan();
  }
  // A new connection may be better than the last one, so the next waiter need not wait for its turn.
  void reconnected() { next_turn_ = executor_.now(); }
  // A question was answered. wrote: which took a write, so that the server is as good as new. Without one it may be a
  // replica, or short of memory.
  void answered(bool wrote) {
    if (!why_) return;
    why_.reset();
    if (wrote) backoff_.reset();
    const TimePoint now = executor_.now();
    const TimePoint last = std::exchange(over_since_, now);
    over_(now >= saturating_add(last, proof_time));
  }

 private:
  // Twice as often as a waiter that backs off by itself, so that a lone one always finds that it may ask.
  void plan() { next_turn_ = saturating_add(executor_.now(), backoff_.next(executor_) / 2); }

  Executor& executor_;
  const std::function<void(bool everyone)> over_;
  std::optional<Failure> why_;  // during an outage
  Backoff backoff_{std::chrono::seconds(1)};
  TimePoint next_turn_;
  TimePoint over_since_ = TimePoint::min();
};

}  // namespace dlock::redis

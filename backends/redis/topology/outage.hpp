// An outage: waiters' requests fail, or the connection is broken. Then one of a client's waiters retries for all, less
// and less often. Decides which waiter may, and when the outage has ended. No I/O.
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
  // over: called when an outage has ended. everyone: all waiters should retry now. Otherwise the last outage is so
  // recent that the server may be failing intermittently, and every waiter should keep to its own time.
  Outage(Executor& executor, std::function<void(bool everyone)> over) : executor_(executor), over_(std::move(over)) {}

  // Whether a waiter may send a request now. In an outage, true lets no other waiter do so for a while.
  [[nodiscard]] bool may_ask() {
    if (!why_) return true;
    if (executor_.now() < next_turn_) return false;
    plan();
    return true;
  }
  // Why a waiter may not. Only after may_ask() returned false.
  [[nodiscard]] const Failure& why() const noexcept { return *why_; }

  // A request failed, or the connection broke. Ignores failures that say nothing about other requests.
  void failed(Failure why) {
    if (why.code != errc::unavailable && why.code != errc::ambiguous) return;
    const bool begins = !why_;
    why_ = std::move(why);
    const TimePoint now = executor_.now();
    if (begins && now >= saturating_add(over_since_, proof_time)) backoff_.reset();
    if (begins || now >= next_turn_) plan();
  }
  // A new connection may work, so the next waiter may send a request at once.
  void reconnected() { next_turn_ = executor_.now(); }
  // A request was answered. wrote: it included a write, so the server is fully usable; otherwise it may be a replica,
  // or short of memory.
  void answered(bool wrote) {
    if (!why_) return;
    why_.reset();
    if (wrote) backoff_.reset();
    const TimePoint now = executor_.now();
    const TimePoint last = std::exchange(over_since_, now);
    over_(now >= saturating_add(last, proof_time));
  }

 private:
  // Twice as often as a waiter that backs off by itself, so that a lone one is always allowed.
  void plan() { next_turn_ = saturating_add(executor_.now(), backoff_.next(executor_) / 2); }

  Executor& executor_;
  const std::function<void(bool everyone)> over_;
  std::optional<Failure> why_;  // during an outage
  Backoff backoff_{std::chrono::seconds(1)};
  TimePoint next_turn_;
  TimePoint over_since_ = TimePoint::min();
};

}  // namespace dlock::redis

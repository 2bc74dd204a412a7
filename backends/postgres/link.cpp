#include "backends/postgres/link.hpp"

#include <algorithm>
#include <utility>

#include <dlock/duration.hpp>

#include "backends/postgres/connect_failure.hpp"

namespace dlock::postgres {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;

namespace {

// Whoever needs the connection does not wait for the end of a long pause, but neither does each of them dial.
constexpr nanoseconds between_attempts = milliseconds(50);
constexpr nanoseconds lasting = std::chrono::seconds(1);

bool hopeless(const Failure& why) {
  return why.code != errc::unavailable && why.code != errc::ambiguous;
}

}  // namespace

Link::Link(Executor& executor, const Dialling& dialling, Purpose purpose, Upkeep upkeep, User& user)
    : executor_(executor),
      dialling_(dialling),
      purpose_(std::move(purpose)),
      upkeep_(upkeep),
      user_(user),
      timer_(executor) {}

void Link::want(bool patient) {
  if (state_ == State::idle) {
    if (patient && keeps_away()) return pause_until(dialling_.full->next());
    connect();
  } else if (state_ == State::pausing) {
    if (patient && keeps_away()) return;
    const TimePoint soon = std::max(executor_.now(), saturating_add(last_attempt_, between_attempts));
    if (soon < next_attempt_) pause_until(soon);
  }
}

void Link::connect() {
  state_ = State::connecting;
  last_attempt_ = executor_.now();
  connection_ = dialling_.connections(executor_, dialling_.options, purpose_, *this);
  connection_->open(saturating_add(last_attempt_, dialling_.connect_timeout));
}

void Link::pause_until(TimePoint at) {
  state_ = State::pausing;
  next_attempt_ = at;
  timer_.arm(at, [this] { connect(); });
}

bool Link::keeps_away() const {
  return dialling_.full != nullptr && dialling_.full->makes_room() && executor_.now() < dialling_.full->next();
}

TimePoint Link::next_attempt_after(bool refused_as_full) {
  if (!refused_as_full) return saturating_add(executor_.now(), backoff_.next(executor_));
  if (dialling_.full->makes_room()) return dialling_.full->next();
  return saturating_add(executor_.now(), urgent_backoff_.next(executor_));
}

bool Link::may_rest() const {
  return state_ == State::ready && upkeep_ == Upkeep::kept_up && was_refused_as_full_ && dialling_.full->makes_room();
}

void Link::rest() {
  state_ = State::idle;
  connection_.reset();
  dialling_.full->looked();
}

void Link::connection_ready() {
  state_ = State::ready;
  server_ = connection_->server();
  problem_ = {};
  ready_since_ = executor_.now();
  urgent_backoff_.reset();
  user_.link_ready();
}

void Link::connection_lost(const Failure& why) {
  const bool was_ready = state_ == State::ready;
  // It may belong to the connection. NOLINTNEXTLINE(performance-unnecessary-copy-initialization)
  const Failure reason = why;
  const auto gone = std::move(connection_);  // which is what called us
  problem_ = reason;
  const bool full = !was_ready && dialling_.full != nullptr && is_about_a_full_server(reason);
  if (full) dialling_.full->refused(reason);
  was_refused_as_full_ = full || (was_refused_as_full_ && dialling_.full->recently());
  // A server that lets us in only to throw us out is no better than one that does not.
  if (was_ready && executor_.now() >= saturating_add(ready_since_, lasting)) backoff_.reset();
  if (upkeep_ == Upkeep::once) {
    state_ = State::over;
  } else if (hopeless(reason) && !was_ready) {
    timer_.disarm();
    state_ = State::pausing;  // until somebody wants it again, and not at once
    next_attempt_ = TimePoint::max();
  } else {
    pause_until(next_attempt_after(full));
  }
  user_.link_down(reason, was_ready);
}

void Link::connection_notified(const std::string& channel, const std::string& payload) {
  user_.link_notified(channel, payload);
}

void Link::break_off(const Failure& why) {
  if (connection_) connection_->break_off(why);
}

void Link::stop() {
  state_ = State::over;
  timer_.disarm();
  connection_.reset();
}

}  // namespace dlock::postgres

#include "backends/postgres/sessions/link.hpp"

#include <chrono>
#include <utility>

#include <dlock/duration.hpp>

#include "backends/postgres/sql/connect_failure.hpp"

namespace dlock::postgres {

Link::Link(Executor& executor, const Dialling& dialling, Purpose purpose, Upkeep upkeep, User& user)
    : executor_(executor),
      dialling_(dialling),
      purpose_(std::move(purpose)),
      upkeep_(upkeep),
      user_(user),
      reconnect_(executor, {.lasting = std::chrono::seconds(1)}, [this] { connect(); }) {}

void Link::want(bool patient) {
  if (patient && keeps_away()) {
    if (reconnect_.is_idle()) reconnect_.pause_until(dialling_.full->next());
    if (reconnect_.is_pausing()) return;
  }
  reconnect_.want();
}

void Link::connect() {
  connection_ = dialling_.connections(executor_, dialling_.options, purpose_, *this);
  connection_->open(saturating_add(executor_.now(), dialling_.connect_timeout));
}

bool Link::keeps_away() const {
  return dialling_.full != nullptr && dialling_.full->makes_room() && executor_.now() < dialling_.full->next();
}

TimePoint Link::next_attempt_at_full_server() {
  if (dialling_.full->makes_room()) return dialling_.full->next();
  return saturating_add(executor_.now(), urgent_backoff_.next(executor_));
}

bool Link::may_rest() const {
  return reconnect_.is_ready() && upkeep_ == Upkeep::kept_up && was_refused_as_full_ && dialling_.full->makes_room();
}

void Link::rest() {
  reconnect_.rest();
  connection_.reset();
  dialling_.full->looked();
}

void Link::connection_ready() {
  breaking_off_ = false;
  reconnect_.ready();
  server_ = connection_->server();
  urgent_backoff_.reset();
  user_.link_ready();
}

void Link::connection_lost(const Failure& why) {
  const bool was_ready = reconnect_.is_ready();
  Failure reason = why;
  if (was_ready && !breaking_off_ && !reconnect_.is_answered()) reason.detail += common::nothing_answered;
  const auto gone = std::move(connection_);  // which is what called us
  const bool full = !was_ready && dialling_.full != nullptr && is_about_a_full_server(reason);
  if (full) dialling_.full->refused(reason);
  was_refused_as_full_ = full || (was_refused_as_full_ && dialling_.full->recently());
  if (full) {
    reconnect_.down_until(reason, next_attempt_at_full_server());
  } else {
    reconnect_.down(reason);
  }
  if (upkeep_ == Upkeep::once) reconnect_.stop();
  user_.link_down(reason, was_ready);
}

void Link::connection_notified(const std::string& channel, const std::string& payload) {
  user_.link_notified(channel, payload);
}

void Link::break_off(const Failure& why) {
  if (!connection_) return;
  breaking_off_ = true;
  connection_->break_off(why);
}

void Link::stop() {
  reconnect_.stop();
  connection_.reset();
}

}  // namespace dlock::postgres

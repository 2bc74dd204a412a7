#include <dlock/lease.hpp>

#include <chrono>
#include <memory>
#include <utility>

#include <dlock/error.hpp>

#include "core/client/blocking.hpp"
#include "core/client/client_core.hpp"
#include "core/client/lease_record.hpp"
#include "util/immortal.hpp"

namespace dlock {

namespace {

// True: release_ended() will be set.
bool begin_release(const std::shared_ptr<detail::LeaseRecord>& state) noexcept {
  return detail::LeaseRecord::release_and_tell(state, state->core().if_busy());
}

// Releases in a destructor: waits for the service's answer for a bounded time, and never on the engine thread.
void let_go(const std::shared_ptr<detail::LeaseRecord>& state) noexcept {
  if (!state || state->phase() == detail::LeaseRecord::Phase::gone || !begin_release(state)) return;
  const detail::ClientContext& context = state->core().context();
  if (state->release_ended().is_set() || context.engine->must_not_block()) return;
  context.engine->wait(state->release_ended(), context.close_timeout);
}

}  // namespace

Lease::Lease() noexcept = default;
Lease::Lease(std::shared_ptr<detail::LeaseRecord> state) noexcept : state_(std::move(state)) {}
Lease::Lease(Lease&& other) noexcept = default;

Lease& Lease::operator=(Lease&& other) noexcept {
  if (this != &other) let_go(std::exchange(state_, std::exchange(other.state_, nullptr)));
  return *this;
}

Lease::~Lease() {
  let_go(state_);
}

bool Lease::held() const noexcept {
  return state_ && state_->held();
}

TimePoint Lease::valid_until() const noexcept {
  return state_ ? state_->valid_until() : TimePoint::min();
}

FencingToken Lease::token() const noexcept {
  return state_ ? state_->token() : FencingToken();
}

std::chrono::nanoseconds Lease::remaining() const noexcept {
  return state_ ? state_->remaining() : std::chrono::nanoseconds::zero();
}

std::stop_token Lease::lost() const {
  const auto state = state_;  // a callback may destroy this lease
  if (!state) return {};
  state->look_for_loss();
  return state->lost_token();
}

std::stop_token Lease::ended() const {
  const auto state = state_;
  if (!state) return {};
  state->look_for_loss();
  return state->ended_token();
}

bool Lease::release() {
  const auto state = state_;  // a handler may destroy this lease
  if (!state) return false;
  const detail::ClientContext& context = state->core().context();
  if (state->held() && context.engine->must_not_block()) throw Error(detail::would_deadlock());
  if (!begin_release(state)) return false;
  if (!context.engine->wait(state->release_ended(), detail::response_limit(context))) {
    throw Error(errc::unavailable, "the release of " + state->described() + " was not confirmed in time");
  }
  if (state->release_failure().code) throw Error(state->release_failure());
  return state->was_ours();
}

bool Lease::release(std::error_code& ec) noexcept {
  return detail::value_or_code([this] { return release(); }, ec);
}

void Lease::release_in_background() noexcept {
  const auto state = state_;
  if (state) detail::LeaseRecord::release_in_background(state);
}

void Lease::start_release(detail::Completion<bool> handler) {
  if (!state_) {
    handler({}, false);
    return;
  }
  const auto state = state_;
  // Moved, never copied: the captures of the handler must be destroyed where it runs, not inside a task.
  detail::ReleaseCompletion done = [&state = *state, to = std::move(handler)](const Failure& failure,
                                                                              bool was_ours) mutable {
    state.core().notifier().complete([to = std::move(to), failure, was_ours] { to(failure, was_ours); });
  };
  if (!detail::LeaseRecord::release(state, done, engine::IfBusy::leave_task)) done({}, false);
}

const std::string& Lease::name() const noexcept {
  static const util::Immortal<std::string> empty;
  return state_ ? state_->name() : *empty;
}

OwnerId Lease::owner() const noexcept {
  return state_ ? state_->owner() : OwnerId();
}

}  // namespace dlock

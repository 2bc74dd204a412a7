#include <dlock/lease.hpp>

#include <memory>
#include <utility>

#include <dlock/error.hpp>

#include "core/blocking.hpp"
#include "core/lease_state.hpp"
#include "util/immortal.hpp"

namespace dlock {

namespace {

struct Release {
  util::Event finished;
  Failure failure;
  bool was_ours = false;
};

std::shared_ptr<Release> begin_release(const std::shared_ptr<detail::LeaseState>& state) {
  auto release = std::make_shared<Release>();
  state->core().release(state, [release](Failure failure, bool was_ours) {
    release->failure = std::move(failure);
    release->was_ours = was_ours;
    release->finished.set();
  });
  return release;
}

// Gives the lease back on the way out: waits for the service's word for a bounded time, and never on the engine thread.
void let_go(const std::shared_ptr<detail::LeaseState>& state) noexcept {
  if (!state || state->phase() == detail::LeaseState::Phase::released) return;
  const bool worth_waiting = state->held();
  const auto release = begin_release(state);
  detail::ClientCore& core = state->core();
  if (worth_waiting && !release->finished.is_set() && !core.engine().must_not_block()) {
    core.engine().wait(release->finished, core.close_timeout());
  }
}

}  // namespace

Lease::Lease() noexcept = default;
Lease::Lease(std::shared_ptr<detail::LeaseState> state) noexcept : state_(std::move(state)) {}
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

std::stop_token Lease::lost() const {
  if (!state_) return {};
  if (state_->expired() && !state_->foreign_process()) (void)state_->mark_lost();
  state_->fire_lost();  // the engine may not have come to it yet
  return state_->lost_token();
}

bool Lease::release() {
  if (!state_) return false;
  const auto release = begin_release(state_);
  detail::ClientCore& core = state_->core();
  if (!detail::block_until(core, release->finished, detail::response_limit(core))) {
    throw Error(errc::unavailable, "the release of lock \"" + state_->name() + "\" was not confirmed in time");
  }
  if (release->failure.code) throw Error(release->failure);
  return release->was_ours;
}

bool Lease::release(std::error_code& ec) noexcept {
  try {
    ec.clear();
    return release();
  } catch (const Error& e) {
    ec = e.code();
  } catch (...) {  // out of memory: nothing was released yet, the destructor will try again
    ec = std::make_error_code(std::errc::not_enough_memory);
  }
  return false;
}

void Lease::start_release(detail::Completion<bool> handler) {
  if (!state_) {
    handler({}, false);
    return;
  }
  // Handed on, never copied: what it captured must be destroyed where it runs, not inside a task.
  const auto once = std::make_shared<decltype(handler)>(std::move(handler));
  state_->core().release(state_, [state = state_, once](const Failure& failure, bool was_ours) {
    state->core().notify([handler = std::exchange(*once, nullptr), failure, was_ours] { handler(failure, was_ours); });
  });
}

const std::string& Lease::name() const noexcept {
  static const util::Immortal<std::string> empty;
  return state_ ? state_->name() : *empty;
}

OwnerId Lease::owner() const noexcept {
  return state_ ? state_->owner() : OwnerId();
}

}  // namespace dlock

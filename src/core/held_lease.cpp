#include "core/held_lease.hpp"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "core/client_core.hpp"

namespace dlock::detail {

namespace {

// Whether the next renewal may well succeed. What dlock has no code for may pass.
bool may_pass(const std::error_code& code) {
  constexpr std::array lasting = {errc::access_denied, errc::invalid_argument, errc::unsupported, errc::protocol};
  return std::find(lasting.begin(), lasting.end(), code) == lasting.end();
}

}  // namespace

HeldLease::HeldLease(ClientCore& core, Grant grant, LeaseKeeper::Terms terms, TimePoint fixed_end,
                     std::shared_ptr<LeaseState> state)
    : core_(core),
      grant_(std::move(grant)),
      state_(std::move(state)),
      keeper_(terms, state_->granted_at(), grant_.valid_until, grant_.owner.low()),
      timer_(core.executor()),
      fixed_end_(fixed_end) {}

void HeldLease::start() {
  follow(keeper_.start());
}

void HeldLease::extended(TimePoint valid_until) {
  const auto step = keeper_.extended(core_.executor().now(), std::min(valid_until, fixed_end_));
  state_->extend(keeper_.valid_until());
  follow(step);
}

void HeldLease::reconnected() {
  if (!lost_) follow(keeper_.reconnected(core_.executor().now()));
}

void HeldLease::set_lost() noexcept {
  lost_ = true;
  timer_.disarm();
}

bool HeldLease::noticed_by_program() {
  if (state_->phase() != LeaseState::Phase::lost) return false;
  // It looked at the clock just before a renewal arrived, or before our timer ran. What it was told stays true.
  core_.lease_lost(*this, {errc::lost, "the lease of lock \"" + grant_.name + "\" ran out before it was renewed"});
  return true;
}

void HeldLease::follow(LeaseKeeper::Step step) {
  if (noticed_by_program()) return;
  if (step.wake) {
    timer_.arm(*step.wake, [this] { follow(keeper_.due(core_.executor().now())); });
  } else {
    timer_.disarm();
  }
  if (step.action == LeaseKeeper::Action::renew) {
    renew();
  } else if (step.action == LeaseKeeper::Action::lose) {
    core_.lease_lost(*this, {errc::lost, "the lease of lock \"" + grant_.name + "\" ran out before it was renewed"});
  }
}

void HeldLease::renew() {
  // The answer may come after the lease was released or the client closed.
  core_.backend().renew(grant_, [weak = core_.weak_from_this(), owner = grant_.owner](const RenewOutcome& outcome) {
    if (const auto core = weak.lock()) core->renewal_ended(owner, outcome);
  });
}

void HeldLease::renewal_ended(const RenewOutcome& outcome) {
  if (lost_ || noticed_by_program()) return;
  const TimePoint now = core_.executor().now();
  switch (outcome.status) {
    case RenewOutcome::Status::renewed: {
      const auto step = keeper_.renewed(now, outcome.valid_until);
      if (!keeper_.lost()) {
        state_->extend(keeper_.valid_until());
        warned_of_.clear();
        add(core_.counters().renewed);
        if (core_.observed()) {
          core_.tell(
              [event = RenewedEvent{grant_.name, grant_.token}](Observer& observer) { observer.renewed(event); });
        }
      }
      follow(step);
      return;
    }
    case RenewOutcome::Status::lost:
      core_.lost(grant_.owner, outcome.failure);
      return;
    case RenewOutcome::Status::failed:
      add(core_.counters().renew_failed);
      warn_once(outcome.failure);
      follow(keeper_.renewal_failed(
          now, may_pass(outcome.failure.code) ? LeaseKeeper::Retry::soon : LeaseKeeper::Retry::seldom));
      return;
  }
}

void HeldLease::warn_once(const Failure& failure) {
  if (std::find(warned_of_.begin(), warned_of_.end(), failure.code) != warned_of_.end()) return;
  warned_of_.push_back(failure.code);
  core_.warn({grant_.name, failure});
}

}  // namespace dlock::detail

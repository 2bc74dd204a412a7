#include "core/held_lease.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "core/client_core.hpp"

namespace dlock::detail {

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
      core_.warn({grant_.name, outcome.failure});
      follow(keeper_.renewal_failed(now));
      return;
  }
}

}  // namespace dlock::detail

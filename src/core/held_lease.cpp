#include "core/held_lease.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "core/lease_state.hpp"
#include "core/shard.hpp"

namespace dlock::detail {

HeldLease::HeldLease(LeaseState& state, LeaseKeeper::Terms terms, TimePoint fixed_end)
    : state_(state),
      shard_(state.shard()),
      keeper_(terms, state.granted_at(), state.valid_until(), state.owner().low()),
      timer_(shard_.executor()),
      fixed_end_(fixed_end) {}

void HeldLease::start() {
  follow(keeper_.start());
}

void HeldLease::extended(TimePoint valid_until) {
  const auto step = keeper_.extended(shard_.executor().now(), std::min(valid_until, fixed_end_));
  state_.extend(keeper_.valid_until());
  follow(step);
}

void HeldLease::reconnected() {
  if (!lost_) follow(keeper_.reconnected(shard_.executor().now()));
}

void HeldLease::set_lost() noexcept {
  lost_ = true;
  timer_.disarm();
}

// Whether there is nothing left to keep, because of something that the program did or saw.
bool HeldLease::over_for_program() {
  switch (state_.phase()) {
    case LeaseState::Phase::held:
    case LeaseState::Phase::giving_back:
    case LeaseState::Phase::gone:
      return false;
    case LeaseState::Phase::lost:
      // It looked at the clock just before a renewal arrived, or before our timer ran. What it was told stays true.
      lose();
      return true;
    case LeaseState::Phase::given_back:
      shard_.leases().give_back(shard_.leases().find(state_.owner()));
      return true;
  }
  return false;
}

void HeldLease::lose() {
  shard_.leases().lose(state_,
                       {errc::lost, "the lease of lock \"" + state_.name() + "\" ran out before it was renewed"});
}

void HeldLease::follow(LeaseKeeper::Step step) {
  if (over_for_program()) return;
  if (step.wake) {
    timer_.arm(*step.wake, [this] { follow(keeper_.due(shard_.executor().now())); });
  } else {
    timer_.disarm();
  }
  if (step.action == LeaseKeeper::Action::renew) {
    renew();
  } else if (step.action == LeaseKeeper::Action::lose) {
    lose();
  }
}

void HeldLease::renew() {
  // The answer may come after the lease was released or the client closed.
  shard_.backend().renew(state_.grant(),
                         [weak = shard_.weak_from_this(), owner = state_.owner()](const RenewOutcome& outcome) {
                           if (const auto shard = weak.lock()) shard->leases().renewal_ended(owner, outcome);
                         });
}

void HeldLease::renewal_ended(const RenewOutcome& outcome) {
  if (lost_ || over_for_program()) return;
  const TimePoint now = shard_.executor().now();
  switch (outcome.status) {
    case RenewOutcome::Status::renewed: {
      const auto step = keeper_.renewed(now, outcome.valid_until);
      if (!keeper_.lost()) {
        state_.extend(keeper_.valid_until());
        add(shard_.counters().renewed);
        if (shard_.notifier().observed()) {
          shard_.notifier().tell(
              [event = RenewedEvent{state_.name(), state_.token()}](Observer& observer) { observer.renewed(event); });
        }
      }
      follow(step);
      return;
    }
    case RenewOutcome::Status::lost:
      shard_.lost(state_.owner(), outcome.failure);
      return;
    case RenewOutcome::Status::failed:
      add(shard_.counters().renew_failed);
      shard_.warn({state_.name(), outcome.failure});
      follow(keeper_.renewal_failed(now));
      return;
  }
}

}  // namespace dlock::detail

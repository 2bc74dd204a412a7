#include "core/client/held_lease.hpp"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "core/client/client_core.hpp"
#include "core/client/lease_state.hpp"

namespace dlock::detail {

namespace {

// Whether the next renewal may well succeed. What dlock has no code for may pass.
bool may_pass(const std::error_code& code) {
  constexpr std::array lasting = {errc::access_denied, errc::invalid_argument, errc::unsupported, errc::protocol};
  return std::find(lasting.begin(), lasting.end(), code) == lasting.end();
}

}  // namespace

HeldLease::HeldLease(LeaseState& state, LeaseKeeper::Terms terms, TimePoint fixed_end)
    : state_(state),
      core_(state.core()),
      keeper_(terms, state.granted_at(), state.valid_until(), state.owner().low()),
      timer_(core_.executor()),
      fixed_end_(fixed_end) {}

void HeldLease::start() {
  follow(keeper_.start());
}

void HeldLease::extended(TimePoint valid_until) {
  const auto step = keeper_.extended(core_.executor().now(), std::min(valid_until, fixed_end_));
  state_.extend(keeper_.valid_until());
  follow(step);
}

void HeldLease::reconnected() {
  if (!lost_) follow(keeper_.reconnected(core_.executor().now()));
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
      core_.leases().give_back(core_.leases().find(state_.owner()));
      return true;
  }
  return false;
}

void HeldLease::lose() {
  core_.leases().lose(state_, {errc::lost, "the lease of " + state_.described() + " expired before it was renewed"});
}

void HeldLease::follow(LeaseKeeper::Step step) {
  if (over_for_program()) return;
  if (step.wake) {
    timer_.arm(*step.wake, [this] { follow(keeper_.due(core_.executor().now())); });
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
  renewal_sent_ = core_.executor().now();  // one at a time is in flight
  // The answer may come after the lease was released or the client closed.
  core_.backend().renew(state_.grant(),
                        [weak = core_.weak_from_this(), owner = state_.owner()](const RenewOutcome& outcome) {
                          if (const auto core = weak.lock()) core->leases().renewal_ended(owner, outcome);
                        });
}

void HeldLease::renewal_ended(const RenewOutcome& outcome) {
  if (lost_ || over_for_program()) return;
  const TimePoint now = core_.executor().now();
  switch (outcome.status) {
    case RenewOutcome::Status::renewed: {
      const auto step = keeper_.renewed(now, outcome.valid_until);
      if (!keeper_.lost()) {
        state_.extend(keeper_.valid_until());
        warned_of_.clear();
        add(core_.counters().renewed);
        if (core_.notifier().observed()) {
          core_.notifier().tell([event = RenewedEvent{state_.name(), state_.token(), now - renewal_sent_}](
                                    Observer& observer) { observer.renewed(event); });
        }
      }
      follow(step);
      return;
    }
    case RenewOutcome::Status::lost:
      core_.lost(state_.owner(), outcome.failure);
      return;
    case RenewOutcome::Status::failed:
      add(core_.counters().renew_failed);
      // An unanswered renewal leaves nothing in doubt that matters: the next one decides.
      warn_once(unanswered_question(outcome.failure));
      follow(keeper_.renewal_failed(
          now, may_pass(outcome.failure.code) ? LeaseKeeper::Retry::soon : LeaseKeeper::Retry::seldom));
      return;
  }
}

void HeldLease::warn_once(const Failure& failure) {
  if (std::find(warned_of_.begin(), warned_of_.end(), failure.code) != warned_of_.end()) return;
  warned_of_.push_back(failure.code);
  core_.warn({state_.name(), failure});
}

}  // namespace dlock::detail

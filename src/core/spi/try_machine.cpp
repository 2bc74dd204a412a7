#include "core/spi/try_machine.hpp"

#include <algorithm>
#include <utility>

namespace dlock::detail {

using std::chrono::nanoseconds;

namespace {

constexpr nanoseconds shortest_wait = std::chrono::milliseconds(1);

}  // namespace

TryMachine::TryMachine(TryPolicy policy, bool wait, std::function<std::uint64_t()> random)
    : policy_(policy), wait_(wait), random_(std::move(random)), backoff_(policy.backoff_min) {}

TryMachine::Step TryMachine::start() {
  return attempt();
}

TryMachine::Step TryMachine::attempt() {
  state_ = State::trying;
  changed_meanwhile_ = false;
  return {.attempt = true};
}

TryMachine::Step TryMachine::tried(const TryOutcome& outcome, TimePoint now) {
  switch (outcome.status) {
    case TryOutcome::Status::granted:
      outcome_unknown_ = false;
      state_ = State::done;
      return {.report = Report::granted, .final = true};
    case TryOutcome::Status::busy:
      return busy(outcome, now);
    case TryOutcome::Status::failed:
      return failed(outcome.failure, now);
  }
  return {};
}

TryMachine::Step TryMachine::busy(const TryOutcome& outcome, TimePoint now) {
  backoff_ = policy_.backoff_min;
  if (!wait_) {
    state_ = State::done;
    return {.report = Report::busy, .final = true};
  }
  retry_after_ = outcome.retry_after;
  Step step;
  if (!asked_for_watch_) {
    asked_for_watch_ = true;
    state_ = State::starting_watch;
    step.watch = true;
  } else if (changed_meanwhile_) {
    step = attempt();
  } else {
    step = wait_for_change(now);
  }
  step.report = Report::busy;
  return step;
}

TryMachine::Step TryMachine::failed(const Failure& failure, TimePoint now) {
  const bool unknown = failure.code == errc::ambiguous;
  if (unknown) outcome_unknown_ = true;
  if (!wait_ || (!unknown && failure.code != errc::unavailable)) {
    state_ = State::done;
    return {.report = Report::failed, .final = true};
  }
  state_ = State::backing_off;
  const nanoseconds pause = std::max(between(backoff_ / 2, backoff_), shortest_wait);
  backoff_ = backoff_ > policy_.backoff_max / 2 ? policy_.backoff_max : backoff_ * 2;
  return {.report = Report::unreachable, .wake = saturating_add(now, pause)};
}

TryMachine::Step TryMachine::watching(bool established, TimePoint now) {
  if (state_ != State::starting_watch) return {};
  return established ? attempt() : wait_for_change(now);
}

TryMachine::Step TryMachine::changed() {
  if (state_ == State::waiting || state_ == State::backing_off) return attempt();
  changed_meanwhile_ = true;
  return {};
}

TryMachine::Step TryMachine::timer() {
  if (state_ == State::waiting || state_ == State::backing_off) return attempt();
  return {};
}

TryMachine::Step TryMachine::wait_for_change(TimePoint now) {
  state_ = State::waiting;
  nanoseconds pause = between(policy_.poll_min, policy_.poll_max);
  // A lock that expires sends no wake-up. A little later than announced, because the service's clock decides.
  if (retry_after_ && *retry_after_ < pause) {
    pause = std::min(pause, *retry_after_ + between(nanoseconds(0), std::chrono::milliseconds(2)));
  }
  return {.wake = saturating_add(now, std::max(pause, shortest_wait))};
}

nanoseconds TryMachine::between(nanoseconds low, nanoseconds high) {
  if (high <= low) return low;
  const auto range = static_cast<std::uint64_t>((high - low).count()) + 1;
  return low + nanoseconds(static_cast<nanoseconds::rep>(random_() % range));
}

}  // namespace dlock::detail

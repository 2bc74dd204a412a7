#include "backends/redis/queue_machine.hpp"

#include <algorithm>

#include "backends/redis/times.hpp"

namespace dlock::redis {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;

QueueMachine::Step QueueMachine::start() {
  return ask();
}

QueueMachine::Step QueueMachine::ask() {
  state_ = State::asking;
  news_ = false;
  return {.ask = true};
}

QueueMachine::Step QueueMachine::answered(const AcquireAnswer& answer, bool heard, TimePoint now) {
  unanswered_ = false;
  if (answer.granted) {
    state_ = State::done;
    return {.report = Report::granted};
  }
  maybe_known_ = true;
  backoff_ = first_backoff;
  Step step;
  if (news_) {
    step = ask();
  } else {
    state_ = State::waiting;
    step.wake = saturating_add(now, pause(answer, heard));
  }
  step.report = Report::busy;
  return step;
}

QueueMachine::Step QueueMachine::failed(const Failure& why, TimePoint now) {
  const bool ambiguous = why.code == errc::ambiguous;
  // An answer that makes no sense says nothing about what was done.
  if (ambiguous || why.code == errc::protocol) maybe_known_ = unanswered_ = true;
  if (!ambiguous && why.code != errc::unavailable) {
    state_ = State::done;
    return {.report = Report::failed};
  }
  state_ = State::backing_off;
  const nanoseconds wait = between(backoff_ / 2, backoff_);
  backoff_ = std::min<nanoseconds>(backoff_ * 2, longest_backoff);
  return {.report = Report::unreachable, .wake = saturating_add(now, wait)};
}

QueueMachine::Step QueueMachine::news() {
  if (state_ == State::asking) {
    news_ = true;
    return {};
  }
  return recovered();
}

QueueMachine::Step QueueMachine::recovered() {
  if (state_ == State::waiting || state_ == State::backing_off) return ask();
  return {};
}

nanoseconds QueueMachine::pause(const AcquireAnswer& answer, bool heard) {
  const auto rank = static_cast<nanoseconds::rep>(std::min<std::uint64_t>(answer.rank.value_or(0), 1000));
  const nanoseconds longest = heard ? longest_poll : longest_blind_poll;
  const nanoseconds poll = std::min<nanoseconds>(head_poll * (rank + 1), longest);
  nanoseconds wait = between(poll * 3 / 4, poll);
  // A lock that runs out tells nobody; the first in line looks after it, a little later than announced. And whoever is
  // told that it is free already, behind dead waiters.
  if ((rank == 0 || answer.more) && answer.free_in) {
    wait = std::min(wait, nanoseconds(*answer.free_in) + between(milliseconds(1), milliseconds(3)));
  }
  return wait;
}

nanoseconds QueueMachine::between(nanoseconds low, nanoseconds high) {
  if (high <= low) return low;
  return low + nanoseconds(random_() % static_cast<std::uint64_t>((high - low).count() + 1));
}

}  // namespace dlock::redis

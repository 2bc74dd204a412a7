#include "backends/redis/waiting/queue_machine.hpp"

#include <algorithm>

#include "backends/redis/timing.hpp"

namespace dlock::redis {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;

QueueMachine::Step QueueMachine::start() {
  return ask();
}

QueueMachine::Step QueueMachine::ask() {
  state_ = State::asking;
  news_ = false;
  look_ = TimePoint::max();
  return {.ask = true};
}

QueueMachine::Step QueueMachine::answered(const AcquireAnswer& answer, bool heard, TimePoint now) {
  if (answer.granted) {
    state_ = State::done;
    return {.report = Report::granted};
  }
  maybe_known_ = true;
  // The last one in line is not the one to look any more.
  if (answer.joined) watching_ = false;
  backoff_ = first_backoff;
  Step step;
  if (news_) {
    step = ask();
  } else {
    state_ = State::waiting;
    wake_ = std::min(next_look(answer, heard, now), look_);
    step.wake = wake_;
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

QueueMachine::Step QueueMachine::watch(nanoseconds free_in, TimePoint now) {
  watching_ = true;
  const TimePoint look = saturating_add(now, little_after(free_in));
  // The answer that is under way may be older than what we were told.
  if (state_ == State::asking) look_ = look;
  if (state_ != State::waiting || wake_ <= look) return {};
  wake_ = look;
  return {.wake = wake_};
}

QueueMachine::Step QueueMachine::recovered() {
  if (state_ == State::waiting || state_ == State::backing_off) return ask();
  return {};
}

TimePoint QueueMachine::next_look(const AcquireAnswer& answer, bool heard, TimePoint now) {
  const auto rank = static_cast<nanoseconds::rep>(std::min<std::uint64_t>(answer.rank.value_or(0), 1000));
  const nanoseconds behind = head_poll * rank;
  const nanoseconds longest = heard ? longest_poll : longest_blind_poll;
  // Everybody tells us what becomes of the lock, except strangers.
  const bool rarely = heard && !strangers_;
  const nanoseconds poll = rarely ? longest : std::min<nanoseconds>(head_poll + behind, longest);
  TimePoint wake = saturating_add(now, between(poll * 3 / 4, poll));
  if (rarely) wake = std::max(now, TimePoint(wake.time_since_epoch() / poll_beat * poll_beat));
  if (!answer.free_in) return wake;
  // A lock that expires sends no message. The waiter that watches it looks first, the others later the further back
  // they are. And a waiter that is told that it is free already, behind dead waiters, asks at once.
  const bool watches = rank == 0 || watching_ || answer.more;
  const nanoseconds free_in = std::min<nanoseconds>(*answer.free_in, longest_poll);
  return std::min(wake, saturating_add(now, little_after(watches ? free_in : free_in + behind)));
}

nanoseconds QueueMachine::little_after(nanoseconds end) {
  return std::min<nanoseconds>(end, longest_poll) + between(milliseconds(1), milliseconds(3));
}

nanoseconds QueueMachine::between(nanoseconds low, nanoseconds high) {
  if (high <= low) return low;
  return low + nanoseconds(random_() % static_cast<std::uint64_t>((high - low).count() + 1));
}

}  // namespace dlock::redis

#include "torture/checker/attempts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace dlock::torture {

using std::chrono::nanoseconds;

void Process::stop(TimePoint at) {
  if (!pauses.empty() && pauses.back().to == TimePoint::max()) return;  // a stopped process cannot be stopped
  pauses.push_back({.from = at, .to = TimePoint::max(), .before = paused_until(at)});
}

void Process::resume(TimePoint at) {
  if (!pauses.empty()) pauses.back().to = std::min(pauses.back().to, at);
}

nanoseconds Process::paused_until(TimePoint time) const {
  auto after = std::upper_bound(pauses.begin(), pauses.end(), time,
                                [](TimePoint t, const Pause& pause) { return t < pause.from; });
  if (after == pauses.begin()) return {};
  --after;
  return after->before + (std::min(time, after->to) - after->from);
}

nanoseconds Process::paused_within(TimePoint from, TimePoint to) const {
  return to <= from ? nanoseconds{} : paused_until(to) - paused_until(from);
}

Attempts::Attempts(std::span<const Event> history) : history_(history) {
  for (std::size_t place = 0; place < history.size(); ++place) {
    if (place > 0 && history[place].at < history[place - 1].at) {
      throw std::invalid_argument("the history is not in chronological order");
    }
    take(place);
  }
}

void Attempts::take(std::size_t place) {
  const Event& e = history_[place];
  switch (e.kind) {
    case Kind::asked:
      if (!by_number_.try_emplace({e.process, e.attempt}, attempts_.size()).second) {
        throw std::invalid_argument(fmt::format("process {} asks acquire {} twice", e.process, e.attempt));
      }
      locks_[{e.lock_kind, e.lock}].attempts.push_back(attempts_.size());
      attempts_.push_back(
          {.process = e.process, .number = e.attempt, .mode = e.mode, .permits = e.permits, .asked = place});
      break;
    case Kind::started:
      if (std::exchange(processes_[e.process].started, true)) {
        throw std::invalid_argument(fmt::format("process {} starts twice", e.process));
      }
      break;
    case Kind::ended:
      processes_[e.process].ended = e.at;
      processes_[e.process].ended_at = place;
      break;
    case Kind::stopped:
      processes_[e.subject].stop(e.at);
      break;
    case Kind::resumed:
      processes_[e.subject].resume(e.at);
      break;
    case Kind::killed:
    case Kind::crashed:
      processes_[e.subject].killed = e.at;
      processes_[e.subject].killed_at = place;
      break;
    case Kind::healed:
      if (e.word == everything) healed_ = e.at;
      break;
    case Kind::served:
      locks_[{e.lock_kind, e.lock}].served.push_back(place);
      break;
    case Kind::struck:
    case Kind::probed:
    case Kind::residue:
      break;
    default:
      take_attempt(place);
  }
}

Attempt& Attempts::attempt_of(std::size_t place) {
  const Event& e = history_[place];
  const auto found = by_number_.find({e.process, e.attempt});
  if (found == by_number_.end()) {
    throw std::invalid_argument(
        fmt::format("process {}: \"{}\" of acquire {}, which was never asked", e.process, name_of(e.kind), e.attempt));
  }
  return attempts_[found->second];
}

void Attempts::require(const Place& before, std::size_t place) const {
  if (before) return;
  const Event& e = history_[place];
  throw std::invalid_argument(fmt::format("process {}: \"{}\" of acquire {} comes before what it is about", e.process,
                                          name_of(e.kind), e.attempt));
}

void Attempts::once(Place& what, std::size_t place, Attempt& attempt) {
  if (what) {
    attempt.extra.push_back(place);
  } else {
    what = place;
  }
}

void Attempts::take_look(std::size_t place, Attempt& attempt) {
  require(attempt.granted, place);
  if (!history_[place].yes) {
    if (!attempt.first_unheld) attempt.first_unheld = place;
    return;
  }
  attempt.last_held = place;
  if ((attempt.lost || attempt.first_unheld || attempt.released) && !attempt.revived) attempt.revived = place;
}

// A failed release may be retried; after "not ours", it never becomes "ours".
void Attempts::take_release(std::size_t place, Attempt& attempt) {
  require(attempt.releasing, place);
  if (!attempt.released) {
    attempt.released = place;
  } else if (history_[place].yes && history_[*attempt.released].kind == Kind::released) {
    attempt.extra.push_back(place);
  }
}

void Attempts::take_attempt(std::size_t place) {
  const Event& e = history_[place];
  Attempt& attempt = attempt_of(place);
  switch (e.kind) {
    case Kind::cancelled:
      if (!attempt.cancelled) attempt.cancelled = place;
      break;
    case Kind::granted:
      if (!attempt.granted) {
        const Event& asked = history_[attempt.asked];
        locks_[{asked.lock_kind, asked.lock}].grants.push_back(by_number_[{e.process, e.attempt}]);
      }
      once(attempt.granted, place, attempt);
      break;
    case Kind::denied:
      once(attempt.denied, place, attempt);
      break;
    case Kind::looked:
      take_look(place, attempt);
      break;
    case Kind::lost:
      once(attempt.lost, place, attempt);
      break;
    case Kind::releasing:
      require(attempt.granted, place);
      if (!attempt.releasing) attempt.releasing = place;
      break;
    case Kind::released:
    case Kind::unreleased:
      take_release(place, attempt);
      break;
    default:
      break;  // `served` events count the writes
  }
}

const Process& Attempts::process(int number) const {
  static const Process untouched;
  const auto found = processes_.find(number);
  return found == processes_.end() ? untouched : found->second;
}

std::string Attempts::lock_of(const Attempt& attempt) const {
  const Event& asked = history_[attempt.asked];
  return fmt::format("{} {}", to_string(asked.lock_kind), asked.lock);
}

TimePoint Attempts::end() const {
  return history_.empty() ? TimePoint() : history_.back().at;
}

bool Attempts::valid_when_granted(const Attempt& attempt) const {
  const Event& granted = history_[*attempt.granted];
  return granted.at < granted.until;
}

bool Attempts::surely_held(const Attempt& attempt) const {
  if (attempt.last_held) return true;
  return attempt.released && history_[*attempt.released].yes && valid_when_granted(attempt);
}

TimePoint Attempts::freed(const Attempt& attempt) const {
  const Process& owner = process(attempt.process);
  TimePoint time = std::min(owner.killed, owner.ended);
  for (const Place& place : {attempt.released, attempt.lost, attempt.first_unheld}) {
    if (place) time = std::min(time, history_[*place].at);
  }
  return time;
}

TimePoint Attempts::ended(const Attempt& attempt) const {
  const Process& owner = process(attempt.process);
  TimePoint time = std::min(owner.killed, owner.ended);
  for (const Place& place : {attempt.granted, attempt.denied}) {
    if (place) time = std::min(time, history_[*place].at);
  }
  return time;
}

TimePoint Attempts::waited_until(const Attempt& attempt) const {
  const Event& asked = history_[attempt.asked];
  TimePoint time = std::min(ended(attempt), asked.until);
  if (attempt.cancelled) time = std::min(time, history_[*attempt.cancelled].at);
  return std::max(time, asked.at);
}

}  // namespace dlock::torture

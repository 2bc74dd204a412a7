#include "tests/fault/checker/attempts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace dlock::fault {

std::chrono::nanoseconds Process::paused_within(TimePoint from, TimePoint to) const {
  std::chrono::nanoseconds sum{};
  for (const auto& pause : pauses) {
    const TimePoint begin = std::max(from, pause.from);
    const TimePoint end = std::min(to, pause.to);
    if (begin < end) sum += end - begin;
  }
  return sum;
}

Attempts::Attempts(std::span<const Event> history) : history_(history) {
  for (std::size_t place = 0; place < history.size(); ++place) {
    if (place > 0 && history[place].at < history[place - 1].at) {
      throw std::invalid_argument("the history is not in the order of time");
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
      locks_[e.lock].attempts.push_back(attempts_.size());
      attempts_.push_back({.process = e.process, .number = e.attempt, .asked = place});
      break;
    case Kind::ended:
      processes_[e.process].ended = e.at;
      break;
    case Kind::stopped:
      processes_[e.subject].pauses.push_back({.from = e.at, .to = TimePoint::max()});
      break;
    case Kind::resumed:
      if (auto& pauses = processes_[e.subject].pauses; !pauses.empty()) pauses.back().to = e.at;
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
      locks_[e.lock].served.push_back(place);
      break;
    case Kind::started:
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

void Attempts::once(Place& what, std::size_t place, Attempt& attempt) {
  if (what) {
    attempt.extra.push_back(place);
  } else {
    what = place;
  }
}

void Attempts::take_attempt(std::size_t place) {
  const Event& e = history_[place];
  Attempt& attempt = attempt_of(place);
  switch (e.kind) {
    case Kind::cancelled:
      attempt.cancelled = place;
      break;
    case Kind::granted:
      if (!attempt.granted) locks_[history_[attempt.asked].lock].grants.push_back(by_number_[{e.process, e.attempt}]);
      once(attempt.granted, place, attempt);
      break;
    case Kind::denied:
      once(attempt.denied, place, attempt);
      break;
    case Kind::looked:
      if (e.yes) {
        attempt.last_held = place;
      } else if (!attempt.first_unheld) {
        attempt.first_unheld = place;
      }
      break;
    case Kind::lost:
      once(attempt.lost, place, attempt);
      break;
    case Kind::releasing:
      if (!attempt.releasing) attempt.releasing = place;
      break;
    case Kind::released:
    case Kind::unreleased:
      once(attempt.released, place, attempt);
      break;
    default:
      break;  // writes are told by who served them
  }
}

const Process& Attempts::process(int number) const {
  static const Process untouched;
  const auto found = processes_.find(number);
  return found == processes_.end() ? untouched : found->second;
}

TimePoint Attempts::end() const {
  return history_.empty() ? TimePoint() : history_.back().at;
}

TimePoint Attempts::given_up(const Attempt& attempt) const {
  TimePoint time = process(attempt.process).killed;
  for (const Place& place : {attempt.releasing, attempt.lost, attempt.first_unheld}) {
    if (place) time = std::min(time, history_[*place].at);
  }
  return time;
}

TimePoint Attempts::freed(const Attempt& attempt) const {
  const Process& owner = process(attempt.process);
  TimePoint time = std::min(owner.killed, owner.ended);
  for (const Place& place : {attempt.released, attempt.lost, attempt.first_unheld}) {
    if (place) time = std::min(time, history_[*place].at);
  }
  return time;
}

TimePoint Attempts::waited_until(const Attempt& attempt) const {
  TimePoint time = process(attempt.process).killed;
  for (const Place& place : {attempt.granted, attempt.denied}) {
    if (place) time = std::min(time, history_[*place].at);
  }
  return time;
}

}  // namespace dlock::fault

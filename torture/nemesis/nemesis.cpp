#include "torture/nemesis/nemesis.hpp"

#include <algorithm>
#include <utility>

#include <dlock/duration.hpp>

#include "torture/rig/pause.hpp"

namespace dlock::torture {

namespace {

using namespace std::chrono_literals;

// The interval at which the crew is checked.
constexpr auto glance = 50ms;
// Locks change hands when processes are stopped or killed, so most other faults are combined with those.
constexpr unsigned percent_of_pairs = 80;

}  // namespace

Nemesis::Nemesis(std::vector<Fault> faults, std::chrono::nanoseconds lease, std::uint64_t seed, Crew& crew,
                 HistoryFile& notes)
    : faults_(std::move(faults)), lease_(lease), dice_(seed), crew_(crew), notes_(notes) {
  for (const Fault& fault : faults_) struck_[fault.kind] = 0;
}

bool Nemesis::wait(std::chrono::nanoseconds length, const std::stop_token& stop) {
  for (const TimePoint end = saturating_add(LeaseClock::now(), length);;) {
    crew_.look_after();
    const auto left = end - LeaseClock::now();
    if (left <= 0ns) return true;
    if (!rig::pause(std::min<std::chrono::nanoseconds>(left, glance), stop)) return false;
  }
}

// The faults that were struck least often for their weight come first, ties in an order from the seed: so each is
// struck once before any is struck again.
std::vector<const Fault*> Nemesis::in_turn(bool of_process) {
  std::vector<const Fault*> faults;
  for (const Fault& fault : faults_) {
    if (of_process && !fault.group.empty()) continue;
    const auto place = faults.begin() + static_cast<std::ptrdiff_t>(dice_.below(faults.size() + 1));
    faults.insert(place, &fault);
  }
  std::stable_sort(faults.begin(), faults.end(), [this](const Fault* a, const Fault* b) {
    return struck_[a->kind] * b->weight < struck_[b->kind] * a->weight;
  });
  return faults;
}

Nemesis::Strike Nemesis::strike(const Fault& fault) {
  const TimePoint begin = LeaseClock::now();
  Strike strike{.fault = &fault, .heal = fault.strike()};
  if (!strike.heal) return strike;
  ++struck_[fault.kind];
  notes_.note({.at = begin, .kind = Kind::struck, .until = LeaseClock::now(), .word = fault.kind});
  return strike;
}

void Nemesis::mend(Strike& strike) {
  if (!strike.heal) return;
  strike.heal();
  strike.heal = nullptr;
  notes_.note({.at = LeaseClock::now(), .kind = Kind::healed, .word = strike.fault->kind});
}

std::chrono::nanoseconds Nemesis::how_long(Linger linger) {
  switch (linger) {
    case Linger::briefly:
      return dice_.between(0ms, lease_ / 5);
    case Linger::within_lease:
      return dice_.between(lease_ / 5, lease_);
    case Linger::beyond_lease:
      return dice_.between(lease_ * 6 / 5, lease_ * 2);
  }
  return lease_;
}

void Nemesis::one_or_two(const std::stop_token& stop) {
  Strike first;
  for (const Fault* const fault : in_turn(false)) {  // a fault without a victim does not delay the others
    first = strike(*fault);
    if (first.heal || stop.stop_requested()) break;
  }
  if (!first.heal) return;
  Strike second;
  const auto others = in_turn(true);
  if (!others.empty() && dice_.chance(percent_of_pairs)) {
    (void)wait(dice_.between(0ms, lease_ / 10), stop);
    second = strike(*others.front());  // one try only: while it waits for a victim, the first fault lasts
  }
  auto first_left = how_long(first.fault->linger);
  auto second_left = second.heal ? how_long(second.fault->linger) : 0ms;
  const auto common = second.heal ? std::min(first_left, second_left) : first_left;
  (void)wait(common, stop);
  mend(first_left > common ? second : first);
  (void)wait(std::max<std::chrono::nanoseconds>(first_left, second_left) - common, stop);
  mend(first);
  mend(second);
}

bool Nemesis::rage(std::chrono::nanoseconds length, const std::stop_token& stop) {
  const TimePoint end = saturating_add(LeaseClock::now(), length);
  while (LeaseClock::now() < end && !stop.stop_requested()) {
    one_or_two(stop);
    (void)wait(dice_.between(0ms, lease_ / 4), stop);
  }
  return !stop.stop_requested();
}

}  // namespace dlock::torture

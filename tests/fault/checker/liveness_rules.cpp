#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <tuple>
#include <vector>

#include "tests/fault/checker/findings.hpp"

namespace dlock::fault {
namespace {

using std::chrono::nanoseconds;

double seconds(nanoseconds time) {
  return std::chrono::duration<double>(time).count();
}

void check_ends_once(const Attempt& attempt, Findings& findings) {
  for (const std::size_t place : attempt.extra) {
    findings.add(Rule::deadlines,
                 fmt::format("something that happens once happened again to acquire {} of process {}", attempt.number,
                             attempt.process),
                 {attempt.asked, place});
  }
  if (attempt.granted && attempt.denied) {
    findings.add(
        Rule::deadlines,
        fmt::format("acquire {} of process {} was both granted and denied", attempt.number, attempt.process),
        {attempt.asked, std::min(*attempt.granted, *attempt.denied), std::max(*attempt.granted, *attempt.denied)});
  }
}

// When holders and waiters came and went.
struct Change {
  TimePoint at;
  int holders;
  int waiters;
  std::size_t attempt;
};

std::vector<Change> changes(const Attempts& attempts, const LockHistory& lock) {
  std::vector<Change> all;
  all.reserve(4 * lock.attempts.size());
  for (const std::size_t index : lock.attempts) {
    const Attempt& attempt = attempts[index];
    all.push_back({.at = attempts.event(attempt.asked).at, .holders = 0, .waiters = 1, .attempt = index});
    if (const TimePoint end = attempts.waited_until(attempt); end != TimePoint::max()) {
      all.push_back({.at = end, .holders = 0, .waiters = -1, .attempt = index});
    }
    if (!attempt.granted) continue;
    const TimePoint granted = attempts.event(*attempt.granted).at;
    const TimePoint freed = std::max(granted, attempts.freed(attempt));
    all.push_back({.at = granted, .holders = 1, .waiters = 0, .attempt = index});
    if (freed != TimePoint::max()) all.push_back({.at = freed, .holders = -1, .waiters = 0, .attempt = index});
  }
  // Who holds comes before who goes: at one instant, a lock that is handed over is not free in between.
  std::stable_sort(all.begin(), all.end(), [](const Change& a, const Change& b) {
    return std::tuple(a.at, -a.holders) < std::tuple(b.at, -b.holders);
  });
  return all;
}

// When a holder that gave no lock back has surely lost it: nobody knows for how long the service keeps it for him.
TimePoint uncertain_until(const Attempts& attempts, const Stall& stall, const Rules& rules) {
  if (!stall.last) return TimePoint::min();
  const Attempt& last = attempts[*stall.last];
  if (last.released && attempts.event(*last.released).yes) return TimePoint::min();
  return attempts.freed(last) + rules.recovery;
}

void check_stall(const Attempts& attempts, const Stall& stall, const Rules& rules, Findings& findings) {
  const TimePoint healed = *attempts.healed();
  const Attempt& waiter = attempts[stall.waiter];
  std::vector<std::size_t> events;
  if (stall.last) {
    const Attempt& last = attempts[*stall.last];
    events = {*last.granted};
    for (const Place& place : {last.releasing, last.released, last.lost}) {
      if (place) events.push_back(*place);
    }
    if (const Place& killed = attempts.process(last.process).killed_at) events.push_back(*killed);
  }
  events.push_back(waiter.asked);
  for (const Place& place : {waiter.granted, waiter.denied}) {
    if (place) events.push_back(*place);
  }
  const auto text = [&](nanoseconds stood) {
    return fmt::format("lock {} was free for {:.3f} s though process {} waited for it",
                       attempts.event(waiter.asked).lock, seconds(stood), waiter.process);
  };
  if (const nanoseconds stood = stall.to - std::max(stall.from, healed); stood > rules.recovery) {
    findings.add(Rule::progress, text(stood), std::move(events));
    return;
  }
  const TimePoint sound = std::max({stall.from, healed + rules.settled, uncertain_until(attempts, stall, rules)});
  if (const nanoseconds stood = stall.to - sound; stood > rules.hand_over) {
    findings.add(Rule::hand_over, text(stood), std::move(events));
  }
}

}  // namespace

std::vector<Stall> stalls(const Attempts& attempts, const LockHistory& lock) {
  std::vector<Stall> found;
  std::optional<TimePoint> free_since;
  std::optional<std::size_t> last;
  std::size_t waiter = 0;
  int holders = 0;
  int waiters = 0;
  for (const Change& change : changes(attempts, lock)) {
    if (change.waiters > 0) waiter = change.attempt;
    if (free_since && (change.holders > 0 || waiters + change.waiters == 0)) {
      const std::size_t who = change.waiters < 0 || change.holders > 0 ? change.attempt : waiter;
      found.push_back({.from = *free_since, .to = change.at, .waiter = who, .last = last});
      free_since.reset();
    }
    holders += change.holders;
    waiters += change.waiters;
    if (change.holders < 0) last = change.attempt;
    if (holders == 0 && waiters > 0) {
      if (!free_since) free_since = change.at;
    } else {
      free_since.reset();
    }
  }
  if (free_since) found.push_back({.from = *free_since, .to = attempts.end(), .waiter = waiter, .last = last});
  return found;
}

void check_deadlines(const Attempts& attempts, const Rules& rules, Findings& findings) {
  for (const Attempt& attempt : attempts.all()) {
    check_ends_once(attempt, findings);
    const Event& asked = attempts.event(attempt.asked);
    TimePoint deadline = asked.until;
    if (attempt.cancelled) deadline = std::min(deadline, attempts.event(*attempt.cancelled).at);
    if (deadline == TimePoint::max()) continue;
    const Process& process = attempts.process(attempt.process);
    const TimePoint end = std::min({attempts.waited_until(attempt), process.ended, attempts.end()});
    if (end <= deadline) continue;
    const nanoseconds late = end - deadline - process.paused_within(asked.at, end);
    if (late <= rules.slack) continue;
    std::vector<std::size_t> events{attempt.asked};
    for (const Place& place : {attempt.cancelled, attempt.granted, attempt.denied}) {
      if (place) events.push_back(*place);
    }
    findings.add(Rule::deadlines,
                 fmt::format("acquire {} of process {} ended {:.3f} s late, or has not ended yet", attempt.number,
                             attempt.process, seconds(late)),
                 std::move(events));
  }
}

void check_progress(const Attempts& attempts, const Rules& rules, Findings& findings) {
  if (attempts.healed()) {
    for (const auto& [name, lock] : attempts.locks()) {
      for (const Stall& stall : stalls(attempts, lock)) {
        if (stall.to > *attempts.healed()) check_stall(attempts, stall, rules, findings);
      }
    }
  }
  for (std::size_t place = 0; place < attempts.history().size(); ++place) {
    const Event& event = attempts.event(place);
    if (event.kind == Kind::probed && !event.yes) {
      findings.add(Rule::progress, fmt::format("a new process did not get lock {}", event.lock), {place});
    }
  }
}

void check_residue(const Attempts& attempts, Findings& findings) {
  for (std::size_t place = 0; place < attempts.history().size(); ++place) {
    const Event& event = attempts.event(place);
    if (event.kind == Kind::residue) findings.add(Rule::no_residue, event.word, {place});
    if (event.kind == Kind::crashed) {
      findings.add(Rule::no_crash, fmt::format("process {} ended by itself: {}", event.subject, event.word), {place});
    }
  }
}

}  // namespace dlock::fault

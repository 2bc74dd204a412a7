#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "torture/checker/findings.hpp"

namespace dlock::torture {
namespace {

using std::chrono::nanoseconds;

// Services count in milliseconds, and some round down.
constexpr nanoseconds max_rounding = std::chrono::milliseconds(10);

std::string who(const Attempt& attempt) {
  return fmt::format("acquire {} of process {}", attempt.number, attempt.process);
}

void check_ends_once(const Attempts& attempts, const Attempt& attempt, Findings& findings) {
  for (const std::size_t place : attempt.extra) {
    const Kind kind = attempts.event(place).kind;
    if (kind != Kind::granted && kind != Kind::denied) continue;
    findings.add(Rule::deadlines, fmt::format("{} was {} twice", who(attempt), name_of(kind)), {attempt.asked, place});
  }
  if (attempt.granted && attempt.denied) {
    findings.add(Rule::deadlines, who(attempt) + " was both granted and denied",
                 {attempt.asked, *attempt.granted, *attempt.denied});
  }
  if (!attempt.granted && !attempt.denied && attempts.process(attempt.process).ended_at) {
    findings.add(Rule::deadlines, who(attempt) + " never ended, though its process did",
                 {attempt.asked, *attempts.process(attempt.process).ended_at});
  }
}

// The reason of a denial must be true.
void check_reason(const Attempts& attempts, const Attempt& attempt, Findings& findings) {
  if (!attempt.denied) return;
  const Event& denied = attempts.event(*attempt.denied);
  if (denied.word == denied_as_timed_out && denied.at + max_rounding < attempts.event(attempt.asked).until) {
    findings.add(Rule::deadlines, who(attempt) + " timed out before its deadline", {attempt.asked, *attempt.denied});
  }
  if (denied.word == denied_as_cancelled && !attempt.cancelled) {
    findings.add(Rule::deadlines, who(attempt) + " was cancelled, though its process had not cancelled it",
                 {attempt.asked, *attempt.denied});
  }
}

void check_deadline(const Attempts& attempts, const Attempt& attempt, const Rules& rules, Findings& findings) {
  const Event& asked = attempts.event(attempt.asked);
  TimePoint deadline = asked.until;
  if (attempt.cancelled) deadline = std::min(deadline, attempts.event(*attempt.cancelled).at);
  const TimePoint end = std::min(attempts.ended(attempt), attempts.end());
  if (end <= deadline) return;
  // Even before the deadline: the process may have been stopped between the noted time and the request.
  const nanoseconds late = end - deadline - attempts.process(attempt.process).paused_within(asked.at, end);
  if (late <= rules.slack) return;
  std::vector<std::size_t> events{attempt.asked};
  for (const Place& place : {attempt.cancelled, attempt.granted, attempt.denied}) {
    if (place) events.push_back(*place);
  }
  findings.add(Rule::deadlines,
               fmt::format("{} ended {:.3f} s late, or has not ended yet", who(attempt), in_seconds(late)),
               std::move(events));
}

void check_release_ends(const Attempts& attempts, const Attempt& attempt, const Rules& rules, Findings& findings) {
  if (!attempt.releasing) return;
  const TimePoint from = attempts.event(*attempt.releasing).at;
  const Process& process = attempts.process(attempt.process);
  TimePoint end = std::min({process.killed, process.ended, attempts.end()});
  if (attempt.released) end = std::min(end, attempts.event(*attempt.released).at);
  const nanoseconds took = end - from - process.paused_within(from, end);
  if (took <= rules.release) return;
  std::vector<std::size_t> events{*attempt.granted, *attempt.releasing};
  if (attempt.released) events.push_back(*attempt.released);
  findings.add(Rule::deadlines,
               fmt::format("the release of {} took {:.3f} s, or has not ended yet", who(attempt), in_seconds(took)),
               std::move(events));
}

// Applies once times are sound, and whatever was not released has surely expired: it is unknown how long the service
// keeps that.
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
  if (stall.overtaker) events.push_back(*attempts[*stall.overtaker].granted);
  const auto text = [&](nanoseconds stood) {
    const std::string lock = attempts.lock_of(waiter);
    if (stall.overtaker) {
      return fmt::format("only readers who had come later held {} for {:.3f} s, though process {} waited to write",
                         lock, in_seconds(stood), waiter.process);
    }
    return fmt::format("{} was free for {:.3f} s though process {} waited for it", lock, in_seconds(stood),
                       waiter.process);
  };
  if (const nanoseconds stood = stall.to - std::max(stall.from, healed); stood > rules.recovery) {
    findings.add(Rule::progress, text(stood), std::move(events));
    return;
  }
  TimePoint sound = std::max(stall.from, healed + rules.settled);
  if (stall.doubt) sound = std::max(sound, *stall.doubt + rules.recovery);
  if (const nanoseconds stood = stall.to - sound; stood > rules.hand_over) {
    findings.add(Rule::hand_over, text(stood), std::move(events));
  }
}

}  // namespace

void check_deadlines(const Attempts& attempts, const Rules& rules, Findings& findings) {
  for (const Attempt& attempt : attempts.all()) {
    check_ends_once(attempts, attempt, findings);
    check_reason(attempts, attempt, findings);
    check_deadline(attempts, attempt, rules, findings);
    check_release_ends(attempts, attempt, rules, findings);
  }
}

void check_progress(const Attempts& attempts, const Rules& rules, Findings& findings) {
  if (attempts.healed()) {
    for (const auto& [id, lock] : attempts.locks()) {
      for (const Stall& stall : stalls(attempts, id.lock_kind, lock)) {
        if (stall.to > *attempts.healed()) check_stall(attempts, stall, rules, findings);
      }
      if (id.lock_kind != LockKind::read_write) continue;
      const TimePoint sound = *attempts.healed() + rules.settled;
      for (const Stall& stall : overtakings(attempts, lock, sound, rules.hand_over)) {
        check_stall(attempts, stall, rules, findings);
      }
    }
  }
  for (std::size_t place = 0; place < attempts.history().size(); ++place) {
    const Event& event = attempts.event(place);
    if (event.kind == Kind::probed && !event.yes) {
      findings.add(Rule::progress,
                   fmt::format("a new process did not get {} {}", to_string(event.lock_kind), event.lock), {place});
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

}  // namespace dlock::torture

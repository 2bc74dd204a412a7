#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "torture/checker/findings.hpp"

namespace dlock::torture {
namespace {

// The place up to which a grant was surely believed in: held() never comes back once it was false.
std::size_t last_belief(const Attempt& attempt) {
  return std::max(*attempt.granted, attempt.last_held.value_or(*attempt.granted));
}

FencingToken token_of(const Attempts& attempts, const Attempt& attempt) {
  return attempts.event(*attempt.granted).token;
}

void check_exclusion_of(const Attempts& attempts, const LockHistory& lock, const HoleTimes& hole, Findings& findings) {
  // The grants so far, by the place up to which they were believed in, the last one first.
  std::map<std::size_t, std::size_t, std::greater<>> believers;
  for (const std::size_t index : lock.grants) {
    const Attempt& next = attempts[index];
    if (!attempts.surely_held(next)) continue;
    believers.erase(believers.lower_bound(*next.granted), believers.end());
    const TimePoint entered = attempts.event(*next.granted).at;
    // Of those that are not excused, the one that was believed in the longest.
    for (const auto& [believed, believer] : believers) {
      const Attempt& other = attempts[believer];
      if (hole.excuses(Rule::exclusion, other, entered, attempts.event(believed).at)) {
        findings.excuse(Rule::exclusion);
        continue;
      }
      findings.add(Rule::exclusion,
                   fmt::format("process {} found lock {} held after process {} had been granted it", other.process,
                               attempts.event(next.asked).lock, next.process),
                   {*other.granted, *next.granted, believed});
      break;
    }
    believers.emplace(last_belief(next), index);
  }
}

// A grant that is held when the news of it comes has been held since the service gave it. So a grant of which the news
// came earlier was given earlier, though it had run out by then.
void check_tokens_of(const Attempts& attempts, const LockHistory& lock, const HoleTimes& hole, Findings& findings) {
  std::map<FencingToken, std::size_t> seen;
  for (const std::size_t index : lock.grants) {
    const Attempt& attempt = attempts[index];
    const FencingToken token = token_of(attempts, attempt);
    if (token == FencingToken()) {
      findings.add(Rule::unique_tokens, fmt::format("process {} was granted the lock without a token", attempt.process),
                   {*attempt.granted});
      continue;
    }
    if (const auto [same, added] = seen.try_emplace(token, index); !added) {
      findings.add(Rule::unique_tokens, fmt::format("token {} was granted twice", token.value()),
                   {*attempts[same->second].granted, *attempt.granted});
      continue;
    }
    const auto& [greatest, greatest_index] = *seen.rbegin();
    if (greatest > token && attempts.surely_held(attempt)) {
      const TimePoint entered = attempts.event(*attempts[greatest_index].granted).at;
      if (hole.excuses(Rule::growing_tokens, attempt, entered, attempts.event(*attempt.granted).at)) {
        findings.excuse(Rule::growing_tokens);
        continue;
      }
      findings.add(Rule::growing_tokens,
                   fmt::format("token {} was granted after token {}", token.value(), greatest.value()),
                   {*attempts[greatest_index].granted, *attempt.granted});
    }
  }
}

void check_fencing_of(const Attempts& attempts, const LockHistory& lock, Findings& findings) {
  std::optional<std::size_t> newest;  // of the writes that were taken
  for (const std::size_t place : lock.served) {
    const Event& write = attempts.event(place);
    if (!newest) {
      if (!write.yes) findings.add(Rule::fencing, "the first write was refused", {place});
    } else if (const Event& other = attempts.event(*newest); write.yes && write.token < other.token) {
      findings.add(Rule::fencing,
                   fmt::format("a write with token {} was taken after one with token {}", write.token.value(),
                               other.token.value()),
                   {*newest, place});
    } else if (!write.yes && write.token >= other.token) {
      findings.add(Rule::fencing,
                   fmt::format("a write with token {} was refused, though none newer than {} had been taken",
                               write.token.value(), other.token.value()),
                   {*newest, place});
    }
    if (write.yes && (!newest || write.token > attempts.event(*newest).token)) newest = place;
  }
}

// For each grant of a lock the first one after it that has a greater token; their number where there is none.
std::vector<std::size_t> next_newer(const Attempts& attempts, const LockHistory& lock) {
  std::vector<std::size_t> next(lock.grants.size(), lock.grants.size());
  std::vector<std::size_t> open;  // those that have found none so far; their tokens fall
  for (std::size_t i = 0; i < lock.grants.size(); ++i) {
    const FencingToken token = token_of(attempts, attempts[lock.grants[i]]);
    while (!open.empty() && token_of(attempts, attempts[lock.grants[open.back()]]) < token) {
      next[open.back()] = i;
      open.pop_back();
    }
    open.push_back(i);
  }
  return next;
}

void check_releases_of(const Attempts& attempts, const LockHistory& lock, Findings& findings) {
  const std::vector<std::size_t> next = next_newer(attempts, lock);
  std::optional<std::size_t> newest;  // of the grants so far
  for (std::size_t i = 0; i < lock.grants.size(); ++i) {
    const Attempt& attempt = attempts[lock.grants[i]];
    const FencingToken token = token_of(attempts, attempt);
    // The news of this grant came late. Tokens that fall though it did not are a matter of another rule.
    const bool stale = newest && token < token_of(attempts, attempts[*newest]) && !attempts.valid_when_granted(attempt);
    const auto other = stale ? newest : next[i] < next.size() ? std::optional(lock.grants[next[i]]) : std::nullopt;
    if (!newest || token_of(attempts, attempts[*newest]) < token) newest = lock.grants[i];
    if (!other || !attempt.released || !attempts.event(*attempt.released).yes) continue;
    if (*attempts[*other].granted > *attempt.releasing) continue;
    findings.add(Rule::honest_release,
                 fmt::format("the release of process {} said \"ours\", though process {} had been granted the lock",
                             attempt.process, attempts[*other].process),
                 {*attempt.granted, *attempts[*other].granted, *attempt.releasing, *attempt.released});
  }
}

// A lease is released or lost, for good: what was lost is not ours, what was ours is not ours again.
void check_release_of(const Attempts& attempts, const Attempt& attempt, Findings& findings) {
  if (!attempt.released) return;
  if (attempts.event(*attempt.released).yes && attempt.lost) {
    findings.add(Rule::honest_release,
                 fmt::format("the release of process {} said \"ours\", though the loss was signalled", attempt.process),
                 {*attempt.lost, *attempt.releasing, *attempt.released});
  }
  for (const std::size_t place : attempt.extra) {
    if (attempts.event(place).kind != Kind::released) continue;
    findings.add(Rule::honest_release,
                 fmt::format("process {} released the same grant again, and was told \"ours\"", attempt.process),
                 {*attempt.releasing, *attempt.released, place});
  }
}

void check_loss_of(const Attempts& attempts, const Attempt& attempt, const Rules& rules, Findings& findings) {
  if (!attempt.first_unheld) return;
  // Not held because it is given back; and what is given back is not lost any more.
  if (attempt.releasing && *attempt.releasing < *attempt.first_unheld) return;
  const auto time_of = [&](const Place& place) { return place ? attempts.event(*place).at : TimePoint::max(); };
  const TimePoint looked = time_of(attempt.first_unheld);
  const Process& process = attempts.process(attempt.process);
  const TimePoint limit =
      std::min({time_of(attempt.lost), time_of(attempt.releasing), process.killed, process.ended, attempts.end()});
  if (limit - looked - process.paused_within(looked, limit) <= rules.loss_slack) return;
  std::vector<std::size_t> events{*attempt.granted, *attempt.first_unheld};
  if (attempt.lost) events.push_back(*attempt.lost);
  findings.add(Rule::timely_loss,
               fmt::format("process {} found the lock not held, and was {}", attempt.process,
                           attempt.lost ? "told of the loss late" : "never told of the loss"),
               std::move(events));
}

// What is lost stays lost, and is said once.
void check_end_of(const Attempts& attempts, const Attempt& attempt, Findings& findings) {
  if (attempt.revived) {
    std::vector<std::size_t> events{*attempt.granted, *attempt.revived};
    for (const Place& place : {attempt.lost, attempt.first_unheld, attempt.released}) {
      if (place && *place < *attempt.revived) events.push_back(*place);
    }
    findings.add(Rule::timely_loss,
                 fmt::format("process {} found the lock held after it had lost it or given it back", attempt.process),
                 std::move(events));
  }
  for (const std::size_t place : attempt.extra) {
    if (attempts.event(place).kind != Kind::lost) continue;
    findings.add(Rule::timely_loss, fmt::format("process {} was told twice of one loss", attempt.process),
                 {*attempt.lost, place});
  }
}

}  // namespace

void check_exclusion(const Attempts& attempts, const HoleTimes& hole, Findings& findings) {
  for (const auto& [name, lock] : attempts.locks()) check_exclusion_of(attempts, lock, hole, findings);
}

void check_tokens(const Attempts& attempts, const HoleTimes& hole, Findings& findings) {
  for (const auto& [name, lock] : attempts.locks()) check_tokens_of(attempts, lock, hole, findings);
}

void check_fencing(const Attempts& attempts, Findings& findings) {
  for (const auto& [name, lock] : attempts.locks()) check_fencing_of(attempts, lock, findings);
}

void check_releases(const Attempts& attempts, Findings& findings) {
  for (const auto& [name, lock] : attempts.locks()) check_releases_of(attempts, lock, findings);
  for (const Attempt& attempt : attempts.all()) check_release_of(attempts, attempt, findings);
}

void check_losses(const Attempts& attempts, const Rules& rules, Findings& findings) {
  for (const Attempt& attempt : attempts.all()) {
    check_loss_of(attempts, attempt, rules, findings);
    check_end_of(attempts, attempt, findings);
  }
}

}  // namespace dlock::torture

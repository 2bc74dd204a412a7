#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "tests/fault/checker/findings.hpp"

namespace dlock::fault {
namespace {

// A grant whose lease was over when the news of it came was never held.
bool valid_when_granted(const Attempts& attempts, const Attempt& attempt) {
  const Event& granted = attempts.event(*attempt.granted);
  return granted.at < granted.until;
}

// The place up to which a grant was surely believed in: held() never comes back once it was false.
std::size_t last_belief(const Attempt& attempt) {
  return std::max(*attempt.granted, attempt.last_held.value_or(*attempt.granted));
}

FencingToken token_of(const Attempts& attempts, const Attempt& attempt) {
  return attempts.event(*attempt.granted).token;
}

void check_exclusion_of(const Attempts& attempts, const LockHistory& lock, Findings& findings) {
  std::optional<std::size_t> believer;  // of the grants so far, the one that was believed in the longest
  for (const std::size_t index : lock.grants) {
    const Attempt& next = attempts[index];
    if (!valid_when_granted(attempts, next)) continue;
    if (believer && last_belief(attempts[*believer]) > *next.granted) {
      const Attempt& other = attempts[*believer];
      findings.add(Rule::exclusion,
                   fmt::format("process {} found lock {} held after process {} had been granted it", other.process,
                               attempts.event(next.asked).lock, next.process),
                   {*other.granted, *next.granted, last_belief(other)});
    }
    if (!believer || last_belief(next) > last_belief(attempts[*believer])) believer = index;
  }
}

// The lease of a grant that is valid when it arrives covers all the time since the service gave it. So a grant that
// arrived earlier was given earlier, though it be stale.
void check_tokens_of(const Attempts& attempts, const LockHistory& lock, Findings& findings) {
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
    if (greatest > token && valid_when_granted(attempts, attempt)) {
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

void check_releases_of(const Attempts& attempts, const LockHistory& lock, Findings& findings) {
  // For each grant, which of all up to it has the greatest token.
  std::vector<std::size_t> newest;
  newest.reserve(lock.grants.size());
  for (const std::size_t index : lock.grants) {
    const bool newer =
        newest.empty() || token_of(attempts, attempts[index]) > token_of(attempts, attempts[newest.back()]);
    newest.push_back(newer ? index : newest.back());
  }
  for (const std::size_t index : lock.grants) {
    const Attempt& attempt = attempts[index];
    if (!attempt.released || !attempt.releasing || !attempts.event(*attempt.released).yes) continue;
    const auto later =
        std::lower_bound(lock.grants.begin(), lock.grants.end(), *attempt.releasing,
                         [&](std::size_t grant, std::size_t place) { return *attempts[grant].granted < place; });
    if (later == lock.grants.begin()) continue;
    const Attempt& other = attempts[newest[static_cast<std::size_t>(later - lock.grants.begin()) - 1]];
    if (token_of(attempts, other) > token_of(attempts, attempt)) {
      findings.add(Rule::honest_release,
                   fmt::format("the release of process {} said \"ours\", though process {} had been granted the lock",
                               attempt.process, other.process),
                   {*attempt.granted, *other.granted, *attempt.releasing, *attempt.released});
    }
  }
}

}  // namespace

void check_exclusion(const Attempts& attempts, Findings& findings) {
  for (const auto& [name, lock] : attempts.locks()) check_exclusion_of(attempts, lock, findings);
}

void check_tokens(const Attempts& attempts, Findings& findings) {
  for (const auto& [name, lock] : attempts.locks()) check_tokens_of(attempts, lock, findings);
}

void check_fencing(const Attempts& attempts, Findings& findings) {
  for (const auto& [name, lock] : attempts.locks()) check_fencing_of(attempts, lock, findings);
}

void check_releases(const Attempts& attempts, Findings& findings) {
  for (const auto& [name, lock] : attempts.locks()) check_releases_of(attempts, lock, findings);
}

void check_losses(const Attempts& attempts, const Rules& rules, Findings& findings) {
  for (const Attempt& attempt : attempts.all()) {
    if (!attempt.first_unheld) continue;
    const TimePoint looked = attempts.event(*attempt.first_unheld).at;
    if (attempt.releasing && *attempt.releasing < *attempt.first_unheld) continue;  // not held because it is given back
    const TimePoint told = attempt.lost ? attempts.event(*attempt.lost).at : attempts.end();
    const Process& process = attempts.process(attempt.process);
    const TimePoint limit = std::min({told, process.killed, process.ended});
    if (limit - looked - process.paused_within(looked, limit) <= rules.loss_slack) continue;
    findings.add(Rule::timely_loss,
                 fmt::format("process {} found the lock not held, and was {}", attempt.process,
                             attempt.lost ? "told of the loss late" : "never told of the loss"),
                 attempt.lost ? std::vector{*attempt.granted, *attempt.first_unheld, *attempt.lost}
                              : std::vector{*attempt.granted, *attempt.first_unheld});
  }
}

}  // namespace dlock::fault

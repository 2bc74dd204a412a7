#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "torture/checker/findings.hpp"

namespace dlock::torture {
namespace {

// The last event at which a grant was surely believed to be held: held() is never true again after false.
std::size_t last_belief(const Attempt& attempt) {
  return std::max(*attempt.granted, attempt.last_held.value_or(*attempt.granted));
}

FencingToken token_of(const Attempts& attempts, const Attempt& attempt) {
  return attempts.event(*attempt.granted).token;
}

// The grants so far, by the last event at which they were believed to be held, the latest first.
using Believers = std::map<std::size_t, std::size_t, std::greater<>>;

void report_crowd(const Attempts& attempts, const Attempt& next, const std::vector<std::size_t>& crowd,
                  const Believers& believers, Findings& findings) {
  const std::string lock = attempts.lock_of(next);
  std::vector<std::size_t> events{*next.granted};
  for (const std::size_t believed : crowd) {
    events.push_back(believed);
    events.push_back(*attempts[believers.at(believed)].granted);
  }
  const Attempt& other = attempts[believers.at(crowd.front())];
  std::string what;
  if (other.permits != next.permits) {
    what = fmt::format("process {} was granted one of {} permits of {} while process {} held one of {}", next.process,
                       next.permits, lock, other.process, other.permits);
  } else if (next.permits > 1) {
    what =
        fmt::format("process {} was granted a permit of {} while all {} were held", next.process, lock, next.permits);
  } else {
    what =
        fmt::format("process {} found {} held after process {} had been granted it", other.process, lock, next.process);
  }
  findings.add(Rule::exclusion, std::move(what), std::move(events));
}

// It is a violation if so many others held the lock that there was no room for this grant, except those that are
// excused; so is a different number of permits.
void check_entry(const Attempts& attempts, const Attempt& next, const Believers& believers, const HoleTimes& hole,
                 Findings& findings) {
  const TimePoint entered = attempts.event(*next.granted).at;
  std::vector<std::size_t> crowd;  // the last believers that are not excused
  std::size_t excused = 0;
  for (const auto& [believed, believer] : believers) {
    const Attempt& other = attempts[believer];
    if (together(other, next)) continue;
    // This grant may have arrived late.
    if (hole.excuses(Rule::exclusion, other, entered, attempts.event(believed).at) ||
        hole.excuses(Rule::exclusion, next, attempts.event(*other.granted).at, attempts.event(last_belief(next)).at)) {
      ++excused;
      continue;
    }
    if (other.permits != next.permits) crowd.clear();
    crowd.push_back(believed);
    if (crowd.size() < next.permits && other.permits == next.permits) continue;
    report_crowd(attempts, next, crowd, believers, findings);
    break;
  }
  if (crowd.size() + excused < next.permits) return;
  for (; excused > 0; --excused) findings.excuse(Rule::exclusion);
}

void check_exclusion_of(const Attempts& attempts, const LockHistory& lock, const HoleTimes& hole, Findings& findings) {
  Believers believers;
  for (const std::size_t index : lock.grants) {
    const Attempt& next = attempts[index];
    if (!attempts.surely_held(next)) continue;
    believers.erase(believers.lower_bound(*next.granted), believers.end());
    check_entry(attempts, next, believers, hole, findings);
    believers.emplace(last_belief(next), index);
  }
}

// The grants with the greatest token so far: of exclusive ones, and of all.
class Newest {
 public:
  explicit Newest(const Attempts& attempts) : attempts_(attempts) {}

  void add(std::size_t index) {
    raise(all_, index);
    if (attempts_[index].mode == Mode::exclusive) raise(alone_, index);
  }
  // Of those that may not hold the lock together with this one.
  [[nodiscard]] std::optional<std::size_t> against(const Attempt& attempt) const {
    return attempt.mode == Mode::exclusive ? all_ : alone_;
  }

 private:
  void raise(std::optional<std::size_t>& newest, std::size_t index) const {
    if (!newest || token_of(attempts_, attempts_[*newest]) < token_of(attempts_, attempts_[index])) newest = index;
  }

  const Attempts& attempts_;
  std::optional<std::size_t> all_;
  std::optional<std::size_t> alone_;
};

void check_growth(const Attempts& attempts, const Attempt& attempt, const Attempt& greatest, const HoleTimes& hole,
                  Findings& findings) {
  const TimePoint entered = attempts.event(*greatest.granted).at;
  if (hole.excuses(Rule::growing_tokens, attempt, entered, attempts.event(*attempt.granted).at)) {
    return findings.excuse(Rule::growing_tokens);
  }
  findings.add(Rule::growing_tokens,
               fmt::format("token {} was granted after token {}", token_of(attempts, attempt).value(),
                           token_of(attempts, greatest).value()),
               {*greatest.granted, *attempt.granted});
}

// A grant that is held when it arrives has been held since the service made it. So a grant that arrived earlier was
// made earlier, even if it had expired by then; except for grants that may hold the lock together, such as readers. The
// tokens of permits are unique, but do not order them.
void check_tokens_of(const Attempts& attempts, LockKind lock_kind, const LockHistory& lock, const HoleTimes& hole,
                     Findings& findings) {
  std::map<FencingToken, std::size_t> seen;
  Newest newest(attempts);
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
    const auto greatest = newest.against(attempt);
    newest.add(index);
    if (lock_kind == LockKind::semaphore || !greatest || token_of(attempts, attempts[*greatest]) < token) continue;
    if (attempts.surely_held(attempt)) check_growth(attempts, attempt, attempts[*greatest], hole, findings);
  }
}

// A write needs at least the greatest token accepted so far, a read at least that of all writes.
void check_fencing_of(const Attempts& attempts, const LockHistory& lock, Findings& findings) {
  std::optional<std::size_t> newest;        // of all accepted
  std::optional<std::size_t> newest_write;  // of the accepted writes
  const auto raise = [&](std::optional<std::size_t>& greatest, std::size_t place) {
    if (!greatest || attempts.event(place).token > attempts.event(*greatest).token) greatest = place;
  };
  const auto access = [](const Event& event) { return event.mode == Mode::shared ? "read" : "write"; };
  for (const std::size_t place : lock.served) {
    const Event& event = attempts.event(place);
    const bool reads = event.mode == Mode::shared;
    const std::optional<std::size_t> limit = reads ? newest_write : newest;
    if (!limit) {
      if (!event.yes) findings.add(Rule::fencing, fmt::format("the first {} was refused", access(event)), {place});
    } else if (const Event& other = attempts.event(*limit); event.yes && event.token < other.token) {
      findings.add(
          Rule::fencing,
          fmt::format("a {} with token {} was taken after {} with token {}", access(event), event.token.value(),
                      access(other) == access(event) ? "one" : "a " + std::string(access(other)), other.token.value()),
          {*limit, place});
    } else if (!event.yes && event.token >= other.token) {
      findings.add(Rule::fencing,
                   fmt::format("a {} with token {} was refused, though none newer than {} had been taken",
                               access(event), event.token.value(), other.token.value()),
                   {*limit, place});
    }
    if (event.yes) raise(newest, place);
    if (event.yes && !reads) raise(newest_write, place);
  }
}

// For each grant, the first later one with a greater token that may not hold the lock together with it; the number of
// grants if there is none.
std::vector<std::size_t> next_newer(const Attempts& attempts, const LockHistory& lock) {
  std::vector<std::size_t> next(lock.grants.size(), lock.grants.size());
  using Open = std::multimap<FencingToken, std::size_t>;  // without one so far
  Open readers;
  Open others;
  for (std::size_t i = 0; i < lock.grants.size(); ++i) {
    const Attempt& attempt = attempts[lock.grants[i]];
    const FencingToken token = token_of(attempts, attempt);
    const auto close = [&](Open& open) {
      const auto end = open.lower_bound(token);
      for (auto each = open.begin(); each != end; ++each) next[each->second] = i;
      open.erase(open.begin(), end);
    };
    close(others);
    if (attempt.mode == Mode::exclusive) close(readers);
    (attempt.mode == Mode::exclusive ? others : readers).emplace(token, i);
  }
  return next;
}

void check_releases_of(const Attempts& attempts, const LockHistory& lock, const HoleTimes& hole, Findings& findings) {
  const std::vector<std::size_t> next = next_newer(attempts, lock);
  Newest newest(attempts);
  for (std::size_t i = 0; i < lock.grants.size(); ++i) {
    const Attempt& attempt = attempts[lock.grants[i]];
    const FencingToken token = token_of(attempts, attempt);
    // This grant arrived late. If tokens fall for other reasons, a different rule reports that.
    const auto greatest = newest.against(attempt);
    const bool stale =
        greatest && token < token_of(attempts, attempts[*greatest]) && !attempts.valid_when_granted(attempt);
    const auto other = stale ? greatest : next[i] < next.size() ? std::optional(lock.grants[next[i]]) : std::nullopt;
    newest.add(lock.grants[i]);
    if (!other || !attempt.released || !attempts.event(*attempt.released).yes) continue;
    if (*attempts[*other].granted > *attempt.releasing) continue;
    const TimePoint entered = attempts.event(*attempts[*other].granted).at;
    if (hole.excuses(Rule::honest_release, attempt, entered, attempts.event(*attempt.releasing).at)) {
      findings.excuse(Rule::honest_release);
      continue;
    }
    findings.add(Rule::honest_release,
                 fmt::format("the release of process {} said \"ours\", though process {} had been granted the lock",
                             attempt.process, attempts[*other].process),
                 {*attempt.granted, *attempts[*other].granted, *attempt.releasing, *attempt.released});
  }
}

// The tokens of permits do not order them. But if others surely held all permits when a holder was about to release, it
// had none.
void check_permits_of(const Attempts& attempts, const LockHistory& semaphore, const HoleTimes& hole,
                      Findings& findings) {
  enum class What { gives_back, believes_no_more, enters };
  std::vector<std::tuple<std::size_t, What, std::size_t>> changes;  // by their places
  for (const std::size_t index : semaphore.grants) {
    const Attempt& attempt = attempts[index];
    if (attempt.released && attempts.event(*attempt.released).yes) {
      changes.emplace_back(*attempt.releasing, What::gives_back, index);
    }
    if (!attempts.surely_held(attempt)) continue;
    changes.emplace_back(*attempt.granted, What::enters, index);
    changes.emplace_back(last_belief(attempt), What::believes_no_more, index);
  }
  std::sort(changes.begin(), changes.end());
  std::set<std::size_t> inside;
  for (const auto& [place, what, index] : changes) {
    const Attempt& attempt = attempts[index];
    if (what == What::enters && last_belief(attempt) > place) inside.insert(index);
    if (what == What::believes_no_more) inside.erase(index);
    if (what != What::gives_back || inside.size() - inside.count(index) < attempt.permits) continue;
    const TimePoint releasing = attempts.event(*attempt.releasing).at;
    const auto excused = [&](std::size_t each) {
      return hole.excuses(Rule::honest_release, attempts[each], releasing, releasing);
    };
    const auto others =
        std::count_if(inside.begin(), inside.end(), [&](std::size_t each) { return each != index && !excused(each); });
    if (excused(index) || static_cast<std::size_t>(others) < attempt.permits) {
      findings.excuse(Rule::honest_release);
      continue;
    }
    std::vector<std::size_t> events{*attempt.granted, *attempt.releasing, *attempt.released};
    for (const std::size_t other : inside) events.push_back(last_belief(attempts[other]));
    findings.add(Rule::honest_release,
                 fmt::format("the release of process {} said \"ours\", though others held all {} permits",
                             attempt.process, attempt.permits),
                 std::move(events));
  }
}

// A lease ends once, by a release or a loss: after a loss, or a second time, a release must not return "ours".
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
  // After its own release, a lock is not held, and cannot be lost.
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

// A loss is final, and signalled once.
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
  for (const auto& [id, lock] : attempts.locks()) check_exclusion_of(attempts, lock, hole, findings);
}

void check_tokens(const Attempts& attempts, const HoleTimes& hole, Findings& findings) {
  for (const auto& [id, lock] : attempts.locks()) check_tokens_of(attempts, id.lock_kind, lock, hole, findings);
}

void check_fencing(const Attempts& attempts, Findings& findings) {
  for (const auto& [id, lock] : attempts.locks()) check_fencing_of(attempts, lock, findings);
}

void check_releases(const Attempts& attempts, const HoleTimes& hole, Findings& findings) {
  for (const auto& [id, lock] : attempts.locks()) {
    if (id.lock_kind == LockKind::semaphore) {
      check_permits_of(attempts, lock, hole, findings);
    } else {
      check_releases_of(attempts, lock, hole, findings);
    }
  }
  for (const Attempt& attempt : attempts.all()) check_release_of(attempts, attempt, findings);
}

void check_losses(const Attempts& attempts, const Rules& rules, Findings& findings) {
  for (const Attempt& attempt : attempts.all()) {
    check_loss_of(attempts, attempt, rules, findings);
    check_end_of(attempts, attempt, findings);
  }
}

}  // namespace dlock::torture

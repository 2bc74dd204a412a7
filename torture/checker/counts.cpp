#include <algorithm>
#include <optional>

#include "torture/checker/findings.hpp"

namespace dlock::torture {
namespace {

void count_attempts(const Attempts& attempts, Counts& counts) {
  for (const Attempt& attempt : attempts.all()) {
    ++counts.acquires;
    if (attempt.granted) {
      ++counts.grants;
      counts.longest_wait =
          std::max(counts.longest_wait, attempts.event(*attempt.granted).at - attempts.event(attempt.asked).at);
    }
    if (attempt.lost) ++counts.losses;
    if (attempt.denied) ++counts.denied[attempts.event(*attempt.denied).word];
  }
}

void count_events(const Attempts& attempts, Counts& counts) {
  for (const Event& event : attempts.history()) {
    if (event.kind == Kind::served) ++(event.yes ? counts.writes : counts.stale_writes);
    if (event.kind == Kind::struck) ++counts.faults[event.word];
  }
}

void count_turns(const Attempts& attempts, const LockHistory& lock, Counts& counts) {
  std::optional<std::size_t> before;
  for (const std::size_t index : lock.grants) {
    if (before) {
      const Attempt& last = attempts[*before];
      const Attempt& next = attempts[index];
      if (!last.releasing || *last.releasing > *next.granted) {
        ++counts.takeovers;
      } else if (next.asked < *last.releasing) {
        ++counts.hand_overs;
      }
    }
    before = index;
  }
}

void count_stalls(const Attempts& attempts, const LockHistory& lock, Counts& counts) {
  for (const Stall& stall : stalls(attempts, lock)) {
    counts.longest_stall = std::max(counts.longest_stall, stall.to - stall.from);
    if (const auto healed = attempts.healed()) {
      counts.longest_stall_after = std::max(counts.longest_stall_after, stall.to - std::max(stall.from, *healed));
    }
  }
}

}  // namespace

Counts count(const Attempts& attempts) {
  Counts counts;
  count_attempts(attempts, counts);
  count_events(attempts, counts);
  for (const auto& [name, lock] : attempts.locks()) {
    count_turns(attempts, lock, counts);
    count_stalls(attempts, lock, counts);
  }
  return counts;
}

}  // namespace dlock::torture

#include <algorithm>
#include <cstddef>
#include <vector>

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

// A grant takes the lock over from those that have not begun to release it: if there is no room for both, from the
// first of them; from all of them, if it must be alone.
void count_turns(const Attempts& attempts, const LockHistory& lock, Counts& counts) {
  std::vector<std::size_t> holders;
  std::size_t last_release = 0;  // the index of the last one before the grant
  for (const std::size_t index : lock.grants) {
    const Attempt& next = attempts[index];
    std::erase_if(holders, [&](std::size_t holder) {
      const Place& releasing = attempts[holder].releasing;
      if (!releasing || *releasing > *next.granted) return false;
      last_release = std::max(last_release, *releasing);
      return true;
    });
    const auto excludes = [&](std::size_t holder) { return !together(attempts[holder], next); };
    const auto crowd = std::count_if(holders.begin(), holders.end(), excludes);
    if (static_cast<std::size_t>(crowd) >= next.permits) {
      ++counts.takeovers;
      if (next.permits == 1) {
        std::erase_if(holders, excludes);
      } else {
        holders.erase(holders.begin());
      }
    } else if (next.asked < last_release) {
      ++counts.hand_overs;
    }
    holders.push_back(index);
  }
}

void count_stalls(const Attempts& attempts, LockKind lock_kind, const LockHistory& lock, Counts& counts) {
  for (const Stall& stall : stalls(attempts, lock_kind, lock)) {
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
  for (const auto& [id, lock] : attempts.locks()) {
    count_turns(attempts, lock, counts);
    count_stalls(attempts, id.lock_kind, lock, counts);
  }
  return counts;
}

}  // namespace dlock::torture

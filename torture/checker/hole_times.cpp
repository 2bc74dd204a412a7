#include "torture/checker/hole_times.hpp"

#include <algorithm>
#include <cstddef>
#include <map>
#include <string>
#include <utility>

namespace dlock::torture {

HoleTimes::HoleTimes(const Attempts& attempts, const Rules& rules) : attempts_(attempts), rules_(rules) {
  const Hole& hole = rules.hole;
  if (hole.rules.empty()) return;
  std::map<std::pair<std::string, std::string>, std::size_t> open;  // intervals that last until this fault is healed
  for (const Event& event : attempts.history()) {
    if (event.kind == Kind::healed) {
      const auto begun = open.extract({event.word, event.lock});
      if (!begun.empty()) intervals_[begun.mapped()].to = event.at;
    } else if (event.kind == Kind::struck) {
      const bool at_once = hole.strikes.contains(event.word) && event.until > event.at;
      if (!at_once && !hole.strikes.contains(event.word) && !hole.faults.contains(event.word)) continue;
      intervals_.push_back({.from = event.at,
                            .to = at_once ? event.until : attempts.end(),
                            .lock = event.lock,
                            .process = event.subject});
      if (!at_once) open[{event.word, event.lock}] = intervals_.size() - 1;
    }
  }
}

bool HoleTimes::excuses(Rule rule, const Attempt& holder, TimePoint entered, TimePoint believed) const {
  if (!rules_.hole.rules.contains(rule)) return false;
  const Event& asked = attempts_.event(holder.asked);
  return std::any_of(intervals_.begin(), intervals_.end(), [&](const Interval& interval) {
    if (!interval.lock.empty() && interval.lock != asked.lock) return false;
    if (interval.process != 0 && interval.process != holder.process) return false;
    return interval.from <= entered && interval.to >= asked.at &&
           may_believe(holder, std::min(interval.to, entered), believed);
  });
}

// taken: the latest time at which the lock was taken away.
bool HoleTimes::may_believe(const Attempt& holder, TimePoint taken, TimePoint believed) const {
  if (believed - taken > rules_.hole.belief) return false;
  if (!rules_.hole.told_at_once) return true;
  const auto paused = attempts_.process(holder.process).paused_within(taken, believed);
  return believed - taken - paused <= rules_.loss_slack;
}

}  // namespace dlock::torture

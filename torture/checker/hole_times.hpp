// When a known hole of the service mattered, and whom that excuses.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "torture/checker/attempts.hpp"
#include "torture/checker/checker.hpp"

namespace dlock::torture {

class HoleTimes {
 public:
  // Both must outlive it.
  HoleTimes(const Attempts& attempts, const Rules& rules);

  // Whether a fault may have taken the lock from `holder`, so that another process entered at that time though the
  // holder believed in the lock up to `believed`. It was taken after the holder had asked for it, and before the other
  // entered.
  [[nodiscard]] bool excuses(Rule rule, const Attempt& holder, TimePoint entered, TimePoint believed) const;

 private:
  struct Interval {
    TimePoint from;
    TimePoint to;
    std::string lock;  // those of one lock; empty: all
    int process;       // those of one process; 0: all
  };

  [[nodiscard]] bool may_believe(const Attempt& holder, TimePoint taken, TimePoint believed) const;

  const Attempts& attempts_;
  const Rules& rules_;
  std::vector<Interval> intervals_;  // in which locks were taken away, in the order in which they began
};

}  // namespace dlock::torture

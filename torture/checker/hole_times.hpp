// When a known hole of the service was open, and which holders it excuses.
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

  // Whether a fault may have taken the lock from `holder`, so that another process got it at `entered`, although the
  // holder believed that it held it until `believed`. It was taken away after the holder's request, and before
  // `entered`.
  [[nodiscard]] bool excuses(Rule rule, const Attempt& holder, TimePoint entered, TimePoint believed) const;

 private:
  struct Interval {
    TimePoint from;
    TimePoint to;
    std::string lock;  // only this lock; empty: all
    int process;       // only this process; 0: all
  };

  [[nodiscard]] bool may_believe(const Attempt& holder, TimePoint taken, TimePoint believed) const;

  const Attempts& attempts_;
  const Rules& rules_;
  std::vector<Interval> intervals_;  // when locks may have been taken away, in the order of their begin
};

}  // namespace dlock::torture

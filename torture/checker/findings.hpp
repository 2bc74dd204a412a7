// What the rules find, and the rules themselves: each looks through a history once.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "torture/checker/attempts.hpp"
#include "torture/checker/checker.hpp"
#include "torture/checker/hole_times.hpp"

namespace dlock::torture {

// Keeps the first few of each rule, and counts the others.
class Findings {
 public:
  explicit Findings(const Rules& rules) : rules_(rules) {}

  void add(Rule rule, std::string what, std::vector<std::size_t> events);
  void excuse(Rule rule) { ++verdict_.excused[rule]; }
  [[nodiscard]] Verdict take();

 private:
  const Rules& rules_;
  Verdict verdict_;
};

// A time in which a lock was free though somebody waited for it.
struct Stall {
  TimePoint from;
  TimePoint to;
  std::size_t waiter;               // of the attempts that waited at its end, the one that had asked first
  std::optional<std::size_t> last;  // the attempt that held the lock before, if any did
  TimePoint freed;                  // when that one held it no longer
};
// In the order of time.
[[nodiscard]] std::vector<Stall> stalls(const Attempts& attempts, const LockHistory& lock);

void check_exclusion(const Attempts& attempts, const HoleTimes& hole, Findings& findings);
void check_tokens(const Attempts& attempts, const HoleTimes& hole, Findings& findings);
void check_fencing(const Attempts& attempts, Findings& findings);
void check_releases(const Attempts& attempts, Findings& findings);
void check_losses(const Attempts& attempts, const Rules& rules, Findings& findings);
void check_deadlines(const Attempts& attempts, const Rules& rules, Findings& findings);
void check_progress(const Attempts& attempts, const Rules& rules, Findings& findings);
void check_residue(const Attempts& attempts, Findings& findings);

[[nodiscard]] Counts count(const Attempts& attempts);

}  // namespace dlock::torture

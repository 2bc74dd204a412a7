// What the rules find, and the rules themselves: each looks through a history once.
#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
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

// A time in which a lock with a waiter was free.
struct Stall {
  TimePoint from;
  TimePoint to{};
  std::size_t waiter;                 // of the attempts that waited at its end, the one that had asked first
  std::optional<std::size_t> last{};  // the attempt that held the lock before, if any did
  // When the last one held it no longer that did not give it back, and that the service may still keep it for.
  std::optional<TimePoint> doubt{};
  std::optional<std::size_t> overtaker{};  // a reader who held it meanwhile though the waiter wants to write
};
// In the order of time. A read-write lock is free for readers while others read and no writer waits, a semaphore while
// permits are left.
[[nodiscard]] std::vector<Stall> stalls(const Attempts& attempts, LockKind lock_kind, const LockHistory& lock);
// The times in which a read-write lock was held only by readers who came later than a waiting writer: later by
// more than `grace` than it, than any writer before it, and than the time at which times are sound.
[[nodiscard]] std::vector<Stall> overtakings(const Attempts& attempts, const LockHistory& lock, TimePoint sound,
                                             std::chrono::nanoseconds grace);

void check_exclusion(const Attempts& attempts, const HoleTimes& hole, Findings& findings);
void check_tokens(const Attempts& attempts, const HoleTimes& hole, Findings& findings);
void check_fencing(const Attempts& attempts, Findings& findings);
void check_releases(const Attempts& attempts, const HoleTimes& hole, Findings& findings);
void check_losses(const Attempts& attempts, const Rules& rules, Findings& findings);
void check_deadlines(const Attempts& attempts, const Rules& rules, Findings& findings);
void check_progress(const Attempts& attempts, const Rules& rules, Findings& findings);
void check_residue(const Attempts& attempts, Findings& findings);

[[nodiscard]] Counts count(const Attempts& attempts);

}  // namespace dlock::torture

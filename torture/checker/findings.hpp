// The rules, each of which examines a history once, and their findings.
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

// Keeps the first few violations of each rule, and counts the others.
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
  std::size_t waiter;                 // of those that waited at its end, the one that requested first
  std::optional<std::size_t> last{};  // the attempt that held the lock before, if any did
  // When the last holder stopped that did not release, and for which the service may still keep the lock.
  std::optional<TimePoint> doubt{};
  std::optional<std::size_t> overtaker{};  // a reader that held it meanwhile, although the waiter is a writer
};
// In the order of time. A read-write lock is free for readers while others read and no writer waits, a semaphore while
// permits are left.
[[nodiscard]] std::vector<Stall> stalls(const Attempts& attempts, LockKind lock_kind, const LockHistory& lock);
// The times in which a read-write lock was held only by readers that came later than a waiting writer: more than
// `grace` later than it, than any writer before it, and than the begin of sound times.
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

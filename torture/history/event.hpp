// What happened to locks, as it was seen: one event for each step of a process, on one clock for all of them.
//
// A process notes the time of what it asks before it asks, and of what it is told after it was told; that of a look
// that found the lock held is from before it, that of one that did not is from after it. So an interval from a grant to
// a look that found the lock held is one in which the process surely believed to hold it. What is done to a process is
// the other way round, as it excuses: the time of a stop is from before it, that of going on from after it, and that of
// a kill is one at which the process surely was no more.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <dlock/clock.hpp>
#include <dlock/lock_kind.hpp>
#include <dlock/token.hpp>

namespace dlock::torture {

[[nodiscard]] inline double in_seconds(std::chrono::nanoseconds time) {
  return std::chrono::duration<double>(time).count();
}

enum class Kind : std::uint8_t {
  // --- Of a process that contends ---
  started,     // the process, which has a number of its own; `word` says what it is
  ended,       // the process, in good order
  asked,       // an acquire begins; `until` is its deadline
  cancelled,   // its cancellation was requested
  granted,     // the lock, with `token`, valid until `until`
  denied,      // an acquire ended without the lock; `word` is "busy", "timed out", "cancelled" or the error
  looked,      // held() was true (`yes`) or not
  lost,        // the loss was signalled
  releasing,   // a release begins
  released,    // it was ours (`yes`), or not
  unreleased,  // the release failed; `word` is the error
  writing,     // sends a write with `token` to the resource that the lock protects; a read, if shared
  wrote,       // the resource took it (`yes`), or not
  // --- Of the resource ---
  served,  // a write with `token` (a read, if shared) was taken (`yes`) or refused; the times are in that order
  // --- Of who breaks things ---
  stopped,  // process `subject` is stopped
  resumed,  // process `subject` goes on
  killed,   // process `subject` was killed
  crashed,  // process `subject` ended without being killed; `word` says how
  struck,   // fault `word` begins; what is done to begin it, is done by `until`, if that is known
  healed,   // fault `word` has ended; "everything" when nothing is broken any more and nothing will be
  probed,   // a new process got the lock after everything was healed (`yes`), or not
  residue,  // what was left in the service when all had quit: `word`
};

struct Event {
  TimePoint at{};
  Kind kind{};
  int process = 0;            // whose event this is; 0 for who runs the others
  std::uint64_t attempt = 0;  // which acquire of that process, from 1; 0 where it is about none
  std::string lock{};
  LockKind lock_kind = LockKind::lock;  // which kind of lock; kinds have their names to themselves
  Mode mode = Mode::exclusive;          // of what is asked and served, and what follows from it
  std::uint32_t permits = 1;            // of a semaphore that is asked for
  FencingToken token{};
  TimePoint until{};  // TimePoint::max() is "without a limit"
  bool yes = false;
  int subject = 0;
  std::string word{};

  friend bool operator==(const Event&, const Event&) = default;
};

// The healing after which nothing breaks any more.
inline constexpr std::string_view everything = "everything";
// Words of a denial that the checker looks into.
inline constexpr std::string_view denied_as_timed_out = "timed out";
inline constexpr std::string_view denied_as_cancelled = "cancelled";

[[nodiscard]] std::string_view name_of(Kind kind) noexcept;
// "lock", "read-write", "semaphore", "election", as histories have it.
[[nodiscard]] std::string_view name_of(LockKind lock_kind) noexcept;
[[nodiscard]] std::optional<LockKind> lock_kind_named(std::string_view name) noexcept;

// One line, a JSON object, without the line's end. docs/histories.md describes it.
[[nodiscard]] std::string to_line(const Event& event);
// The inverse. nullopt for anything else; `why` says what is wrong with it.
[[nodiscard]] std::optional<Event> parse_line(std::string_view line, std::string& why);

// For people: "+1.234567 s  process 3: is granted the lock, token 18, valid for 1.900000 s  [lock a, acquire 17]". The
// time is counted from `origin`.
[[nodiscard]] std::string describe(const Event& event, TimePoint origin);

}  // namespace dlock::torture

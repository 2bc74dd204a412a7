// The events of a run, as the processes recorded them: one for each step, all on the same clock.
//
// A process records the time of a request before it sends it, and of an answer after it arrived; of held() before the
// call if it returned true, and after it if it returned false. So from a grant to a held() that was true, the process
// surely believed that it held the lock. Faults of processes excuse, so it is the other way round: a stop has the time
// before it, a resume the time after it, and a kill a time at which the process surely had ended.
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
  started,     // a process with its own number; `word` is its role
  ended,       // the process, normally
  asked,       // an acquire begins; `until` is its deadline
  cancelled,   // its cancellation was requested
  granted,     // the lock, with `token`, valid until `until`
  denied,      // an acquire ended without the lock; `word` is "busy", "timed out", "cancelled" or the error
  looked,      // held() was true (`yes`) or not
  lost,        // the loss was signalled
  releasing,   // a release begins
  released,    // it was held until then (`yes`), or not
  unreleased,  // the release failed; `word` is the error
  writing,     // sends a write with `token` to the resource that the lock protects; a read, if shared
  wrote,       // the resource accepted it (`yes`), or not
  // --- Of the resource ---
  served,  // a write with `token` (a read, if shared) was accepted (`yes`) or refused; times are in that order
  // --- Of the process that injects faults ---
  stopped,  // process `subject` is stopped
  resumed,  // process `subject` continues
  killed,   // process `subject` was killed
  crashed,  // process `subject` ended without being killed; `word`: how
  struck,   // fault `word` begins; it has taken effect by `until`, if that is known
  healed,   // fault `word` has ended; "everything": no fault is left, and none will follow
  probed,   // a new process got the lock after all faults (`yes`), or not
  residue,  // something left in the service after all workers ended: `word`
};

struct Event {
  TimePoint at{};
  Kind kind{};
  int process = 0;            // whose event this is; 0: the process that runs the others
  std::uint64_t attempt = 0;  // which acquire of that process, from 1; 0: none
  std::string lock{};
  LockKind lock_kind = LockKind::lock;  // each kind has its own names
  Mode mode = Mode::exclusive;          // of the request or access, and of what follows from it
  std::uint32_t permits = 1;            // of the semaphore that is requested
  FencingToken token{};
  TimePoint until{};  // TimePoint::max(): no limit
  bool yes = false;
  int subject = 0;
  std::string word{};

  friend bool operator==(const Event&, const Event&) = default;
};

// Healed: no fault is left.
inline constexpr std::string_view everything = "everything";
// The reasons of a denial that the checker verifies.
inline constexpr std::string_view denied_as_timed_out = "timed out";
inline constexpr std::string_view denied_as_cancelled = "cancelled";

[[nodiscard]] std::string_view name_of(Kind kind) noexcept;
// "lock", "read-write", "semaphore", "election", as in histories.
[[nodiscard]] std::string_view name_of(LockKind lock_kind) noexcept;
[[nodiscard]] std::optional<LockKind> lock_kind_named(std::string_view name) noexcept;

// One line, a JSON object, without the line's end. docs/histories.md describes it.
[[nodiscard]] std::string to_line(const Event& event);
// The inverse. nullopt: not an event; `why` has the reason.
[[nodiscard]] std::optional<Event> parse_line(std::string_view line, std::string& why);

// For people: "+1.234567 s  process 3: is granted the lock, token 18, valid for 1.900000 s  [lock a, acquire 17]". The
// time is counted from `origin`.
[[nodiscard]] std::string describe(const Event& event, TimePoint origin);

}  // namespace dlock::torture

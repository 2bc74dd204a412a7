// A history, by subject: the course of each acquire, when each process was stopped, who accessed each resource.
#pragma once

#include <chrono>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "torture/history/event.hpp"

namespace dlock::torture {

// The index of an event in the history; nullopt: it did not happen.
using Place = std::optional<std::size_t>;

struct Attempt {
  int process = 0;
  std::uint64_t number = 0;
  Mode mode = Mode::exclusive;
  std::uint32_t permits = 1;  // how many may hold the lock, besides readers with readers
  std::size_t asked = 0;
  Place cancelled{};
  Place granted{};
  Place denied{};
  Place lost{};
  Place releasing{};
  Place released{};                  // or the release failed
  Place last_held{};                 // the last check that found it held
  Place first_unheld{};              // the first check that did not
  Place revived{};                   // the first check that found it held after it was lost or released
  std::vector<std::size_t> extra{};  // further grants, denials, losses and "ours", which must not exist
};

struct Process {
  struct Pause {
    TimePoint from;
    TimePoint to;                     // TimePoint::max(): until the end
    std::chrono::nanoseconds before;  // the sum of the earlier ones
  };
  std::vector<Pause> pauses{};  // in the order of time; none overlaps another
  bool started = false;
  TimePoint killed = TimePoint::max();
  TimePoint ended = TimePoint::max();
  Place killed_at{};
  Place ended_at{};

  // How long it was stopped within an interval.
  [[nodiscard]] std::chrono::nanoseconds paused_within(TimePoint from, TimePoint to) const;

  void stop(TimePoint at);
  void resume(TimePoint at);

 private:
  [[nodiscard]] std::chrono::nanoseconds paused_until(TimePoint time) const;
};

// Whether their modes allow two acquires of a lock to hold it together.
[[nodiscard]] inline bool together(const Attempt& one, const Attempt& other) {
  return one.mode == Mode::shared && other.mode == Mode::shared;
}

// Each kind of locks has its own names.
struct LockId {
  LockKind lock_kind = LockKind::lock;
  std::string name{};

  friend auto operator<=>(const LockId&, const LockId&) = default;
};

struct LockHistory {
  std::vector<std::size_t> attempts{};  // in the order of their requests
  std::vector<std::size_t> grants{};    // attempts that were granted, in the order of the grants
  std::vector<std::size_t> served{};    // events
};

class Attempts {
 public:
  // Throws std::invalid_argument for a history that no run can have written.
  explicit Attempts(std::span<const Event> history);

  [[nodiscard]] std::span<const Event> history() const { return history_; }
  [[nodiscard]] const Event& event(std::size_t place) const { return history_[place]; }
  [[nodiscard]] const std::vector<Attempt>& all() const { return attempts_; }
  [[nodiscard]] const Attempt& operator[](std::size_t index) const { return attempts_[index]; }
  [[nodiscard]] const std::map<LockId, LockHistory>& locks() const { return locks_; }
  // A process without events of its own is returned as an empty one.
  [[nodiscard]] const Process& process(int number) const;
  // When everything was healed.
  [[nodiscard]] std::optional<TimePoint> healed() const { return healed_; }
  // "read-write lock a": the lock of an acquire.
  [[nodiscard]] std::string lock_of(const Attempt& attempt) const;
  // The time of the last event.
  [[nodiscard]] TimePoint end() const;

  // Whether a granted acquire surely held the lock when the grant arrived: a later check found it held, and held() is
  // never true again after false; or it was valid then, and its release confirmed that it had been held throughout. If
  // it expired or was lost meanwhile, it was perhaps never held.
  [[nodiscard]] bool surely_held(const Attempt& attempt) const;
  // Whether the lease of a granted acquire was still valid when the grant arrived.
  [[nodiscard]] bool valid_when_granted(const Attempt& attempt) const;
  // From when on the holder of a granted acquire did not use the lock: it had released it or tried to, the loss was
  // signalled, it found the lock not held, or its process had ended. TimePoint::max(): unknown.
  [[nodiscard]] TimePoint freed(const Attempt& attempt) const;
  // When it got the lock, ended without it, or its process ended; TimePoint::max(): it did not end.
  [[nodiscard]] TimePoint ended(const Attempt& attempt) const;
  // Until when it waited for the lock: as above, but at most until its deadline or its cancellation.
  [[nodiscard]] TimePoint waited_until(const Attempt& attempt) const;

 private:
  void take(std::size_t place);
  void take_attempt(std::size_t place);
  void take_look(std::size_t place, Attempt& attempt);
  void take_release(std::size_t place, Attempt& attempt);
  [[nodiscard]] Attempt& attempt_of(std::size_t place);
  void require(const Place& before, std::size_t place) const;
  static void once(Place& what, std::size_t place, Attempt& attempt);

  std::span<const Event> history_;
  std::vector<Attempt> attempts_;
  std::map<std::pair<int, std::uint64_t>, std::size_t> by_number_;
  std::map<LockId, LockHistory> locks_;
  std::map<int, Process> processes_;
  std::optional<TimePoint> healed_;
};

}  // namespace dlock::torture

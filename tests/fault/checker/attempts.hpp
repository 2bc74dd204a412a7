// A history, sorted out: what became of each acquire, when each process stood still, what was done to each lock.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tests/fault/history/event.hpp"

namespace dlock::fault {

// Places in the history; none where it did not happen.
using Place = std::optional<std::size_t>;

struct Attempt {
  int process = 0;
  std::uint64_t number = 0;
  std::size_t asked = 0;
  Place cancelled{};
  Place granted{};
  Place denied{};
  Place lost{};
  Place releasing{};
  Place released{};                  // or failed to
  Place last_held{};                 // the last look that found it held
  Place first_unheld{};              // the first look that did not
  std::vector<std::size_t> extra{};  // further grants, denials and ends of releases, of which there must be none
};

struct Process {
  struct Pause {
    TimePoint from;
    TimePoint to;
  };
  std::vector<Pause> pauses{};
  TimePoint killed = TimePoint::max();
  TimePoint ended = TimePoint::max();
  Place killed_at{};

  // How long it stood still within an interval.
  [[nodiscard]] std::chrono::nanoseconds paused_within(TimePoint from, TimePoint to) const;
};

struct LockHistory {
  std::vector<std::size_t> attempts{};  // in the order in which they asked
  std::vector<std::size_t> grants{};    // attempts that were granted, in the order of the grants
  std::vector<std::size_t> served{};    // events
};

class Attempts {
 public:
  // Throws std::invalid_argument for what no run can have written.
  explicit Attempts(std::span<const Event> history);

  [[nodiscard]] std::span<const Event> history() const { return history_; }
  [[nodiscard]] const Event& event(std::size_t place) const { return history_[place]; }
  [[nodiscard]] const std::vector<Attempt>& all() const { return attempts_; }
  [[nodiscard]] const Attempt& operator[](std::size_t index) const { return attempts_[index]; }
  [[nodiscard]] const std::map<std::string, LockHistory>& locks() const { return locks_; }
  // One of which nothing is known for processes that nothing was done to.
  [[nodiscard]] const Process& process(int number) const;
  // When everything was healed.
  [[nodiscard]] std::optional<TimePoint> healed() const { return healed_; }
  // The time of the last event.
  [[nodiscard]] TimePoint end() const;

  // When the holder of a granted acquire certainly gave it up or was no more: it was about to release it, or killed, or
  // the loss was signalled, or it looked in vain. TimePoint::max() where nothing is known.
  [[nodiscard]] TimePoint given_up(const Attempt& attempt) const;
  // From when on the lock was free of this holder: as above, but by the end of its release.
  [[nodiscard]] TimePoint freed(const Attempt& attempt) const;
  // When it ended without the lock, its process with it included; TimePoint::max() where it did not.
  [[nodiscard]] TimePoint waited_until(const Attempt& attempt) const;

 private:
  void take(std::size_t place);
  void take_attempt(std::size_t place);
  [[nodiscard]] Attempt& attempt_of(std::size_t place);
  void once(Place& what, std::size_t place, Attempt& attempt);

  std::span<const Event> history_;
  std::vector<Attempt> attempts_;
  std::map<std::pair<int, std::uint64_t>, std::size_t> by_number_;
  std::map<std::string, LockHistory> locks_;
  std::map<int, Process> processes_;
  std::optional<TimePoint> healed_;
};

}  // namespace dlock::fault

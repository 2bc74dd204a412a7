// The ready-made way to wait for a lock: try, and when busy, watch and try again. No I/O, no clock, no threads: events
// go in, the next step comes out; TryBackend's contention carries it out.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>

#include <dlock/spi/try_backend.hpp>

namespace dlock::detail {

// The order try, watch, try again is what makes a wake-up impossible to lose: the second try sees a release before the
// watch was set, the watch sees a release after that. An uncontended acquire is one try and no watch.
class TryMachine {
 public:
  enum class Report { none, granted, busy, unreachable, failed };
  struct Step {
    Report report = Report::none;
    bool final = false;                            // the machine is done; nothing follows
    bool attempt = false;                          // try now; tried() follows
    bool watch = false;                            // start watching; watching() follows
    std::optional<TimePoint> wake = std::nullopt;  // call timer() then
  };

  TryMachine(TryPolicy policy, bool wait, std::function<std::uint64_t()> random);

  [[nodiscard]] Step start();
  [[nodiscard]] Step tried(const TryOutcome& outcome, TimePoint now);
  // Whether there is a watch now.
  [[nodiscard]] Step watching(bool established, TimePoint now);
  // The lock may have become free.
  [[nodiscard]] Step changed();
  [[nodiscard]] Step timer();

  // A try ended without an answer, and no later one was granted. That the lock was busy says nothing: the try may come
  // after that, where it was sent over another connection.
  [[nodiscard]] bool outcome_unknown() const noexcept { return outcome_unknown_; }

 private:
  enum class State { idle, trying, starting_watch, waiting, backing_off, done };

  [[nodiscard]] Step attempt();
  [[nodiscard]] Step busy(const TryOutcome& outcome, TimePoint now);
  [[nodiscard]] Step failed(const Failure& failure, TimePoint now);
  [[nodiscard]] Step wait_for_change(TimePoint now);
  [[nodiscard]] std::chrono::nanoseconds between(std::chrono::nanoseconds low, std::chrono::nanoseconds high);

  const TryPolicy policy_;
  const bool wait_;
  const std::function<std::uint64_t()> random_;
  State state_ = State::idle;
  bool asked_for_watch_ = false;
  bool changed_meanwhile_ = false;
  bool outcome_unknown_ = false;
  std::optional<std::chrono::nanoseconds> retry_after_;
  std::chrono::nanoseconds backoff_;
};

}  // namespace dlock::detail

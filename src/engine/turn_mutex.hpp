// The mutex of an engine's turns: made for holds of less than a microsecond by many threads, and for one thread, the
// loop, that must not wait behind them.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

#include "util/futex.hpp"
#include "util/thread_annotations.hpp"

namespace dlock::engine {

// Not fair: a thread that runs takes it before those that sleep. That is what keeps the rate up where there are more
// callers than processors: a turn costs no switch of threads. Only lock_first() goes before all others.
//
// At most one of the sleepers is on its way at a time: further unlocks wake no thread until that one has come, or each
// turn would cost a wake-up. (As in Go's sync.Mutex.) A std::mutex has neither; with 64 callers on two processors it
// had a third of the rate.
class DLOCK_CAPABILITY("mutex") TurnMutex {
 public:
  TurnMutex() = default;
  TurnMutex(const TurnMutex&) = delete;
  TurnMutex& operator=(const TurnMutex&) = delete;

  // Fails also while a thread waits in lock_first().
  [[nodiscard]] bool try_lock() noexcept DLOCK_TRY_ACQUIRE(true);
  void lock() noexcept DLOCK_ACQUIRE();
  // Goes before all that wait in lock() or come to try.
  void lock_first() noexcept DLOCK_ACQUIRE();
  // At most for so long; a thread that gives up loses its place.
  [[nodiscard]] bool lock_first_for(std::chrono::nanoseconds limit) noexcept DLOCK_TRY_ACQUIRE(true);
  void unlock() noexcept DLOCK_RELEASE();

  // Whether a thread waits in lock_first().
  [[nodiscard]] bool somebody_goes_first() const noexcept { return first_.load() > 0; }

 private:
  static constexpr std::uint32_t locked = 1;
  static constexpr std::uint32_t coming = 2;   // one of the sleepers was woken and has not come yet
  static constexpr std::uint32_t sleeper = 4;  // as many as sleep, or are about to

  [[nodiscard]] bool spin() const noexcept;
  void sleep_for_lock() noexcept;
  [[nodiscard]] bool lock_first_until(const util::MonotonicPoint* until) noexcept;
  // Wakes whose turn it is to take it, unless it is locked.
  void pass_on(std::uint32_t state) noexcept;

  std::atomic<std::uint32_t> state_{0};
  std::atomic<std::uint32_t> first_{0};        // as many as are in lock_first()
  std::atomic<std::uint32_t> wakes_{0};        // where lock() sleeps
  std::atomic<std::uint32_t> first_wakes_{0};  // where lock_first() sleeps
};

}  // namespace dlock::engine

#include "util/event.hpp"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <dlock/duration.hpp>

namespace dlock::util {

namespace {

using MonotonicPoint = std::chrono::time_point<std::chrono::steady_clock, std::chrono::nanoseconds>;

// Waits while the word has the value `expected`, until an absolute CLOCK_MONOTONIC time.
void futex_wait(std::atomic<std::uint32_t>& word, std::uint32_t expected, const MonotonicPoint* until) noexcept {
  timespec absolute{};
  if (until != nullptr) {
    const auto since_epoch = until->time_since_epoch();
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(since_epoch);
    absolute.tv_sec = seconds.count();
    absolute.tv_nsec = (since_epoch - seconds).count();
  }
  // Every outcome (woken, value changed, interrupted, timed out) means: look again.
  (void)syscall(SYS_futex, &word, FUTEX_WAIT_BITSET_PRIVATE, expected, until == nullptr ? nullptr : &absolute, nullptr,
                FUTEX_BITSET_MATCH_ANY);
}

}  // namespace

void Event::set() noexcept {
  if (state_.exchange(state_set) == state_waiting) {
    (void)syscall(SYS_futex, &state_, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);  // cannot fail on a valid address
  }
}

bool Event::wait(std::optional<std::chrono::nanoseconds> limit) noexcept {
  if (is_set()) return true;
  MonotonicPoint until{};
  if (limit) until = saturating_add(MonotonicPoint(std::chrono::steady_clock::now()), *limit);
  std::uint32_t idle = state_idle;
  (void)state_.compare_exchange_strong(idle, state_waiting,
                                       std::memory_order_acq_rel);  // fails if waiting or set already
  while (!is_set()) {
    if (limit && std::chrono::steady_clock::now() >= until) return is_set();
    futex_wait(state_, state_waiting, limit ? &until : nullptr);
  }
  return true;
}

}  // namespace dlock::util

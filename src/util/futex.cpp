#include "util/futex.hpp"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

namespace dlock::util {

void futex_wait(const std::atomic<std::uint32_t>& word, std::uint32_t expected, const MonotonicPoint* until) noexcept {
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

void futex_wake(const std::atomic<std::uint32_t>* word, int count) noexcept {
  (void)syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, count, nullptr, nullptr, 0);  // cannot fail
}

}  // namespace dlock::util

// Sleeping on a word of memory until another thread wakes the sleepers; see futex(2).
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

namespace dlock::util {

using MonotonicPoint = std::chrono::time_point<std::chrono::steady_clock, std::chrono::nanoseconds>;

// Sleeps while the word has the value `expected`, at most until the given time. May also return for no reason.
void futex_wait(const std::atomic<std::uint32_t>& word, std::uint32_t expected,
                const MonotonicPoint* until = nullptr) noexcept;

// Wakes at most that many. The word may be gone: only its address matters, and a thread that sleeps on other memory at
// that address wakes for no reason.
void futex_wake(const std::atomic<std::uint32_t>* word, int count) noexcept;

}  // namespace dlock::util

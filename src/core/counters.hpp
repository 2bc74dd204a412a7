// The numbers behind Client::stats().
#pragma once

#include <atomic>
#include <cstdint>

#include <dlock/observer.hpp>

namespace dlock::detail {

// Written by tasks, read by anyone.
struct Counters {
  using Counter = std::atomic<std::uint64_t>;
  Counter acquired{0}, busy{0}, timed_out{0}, cancelled{0}, failed{0}, released{0}, renewed{0}, renew_failed{0},
      lost{0}, reconnects{0}, callback_exceptions{0}, events_dropped{0}, held{0}, waiting{0};

  [[nodiscard]] Stats snapshot() const noexcept {
    const auto read = [](const Counter& c) { return c.load(std::memory_order_relaxed); };
    return {.acquired = read(acquired),
            .busy = read(busy),
            .timed_out = read(timed_out),
            .cancelled = read(cancelled),
            .failed = read(failed),
            .released = read(released),
            .renewed = read(renewed),
            .renew_failed = read(renew_failed),
            .lost = read(lost),
            .reconnects = read(reconnects),
            .callback_exceptions = read(callback_exceptions),
            .events_dropped = read(events_dropped),
            .held = read(held),
            .waiting = read(waiting)};
  }
};

inline void add(Counters::Counter& counter) noexcept {
  counter.fetch_add(1, std::memory_order_relaxed);
}
inline void subtract(Counters::Counter& counter) noexcept {
  counter.fetch_sub(1, std::memory_order_relaxed);
}

}  // namespace dlock::detail

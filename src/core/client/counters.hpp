// The numbers behind Client::stats().
#pragma once

#include <atomic>
#include <cstdint>

#include <dlock/observer.hpp>

namespace dlock::detail {

// A client's counters: written by its tasks, read by any thread.
struct Counters {
  using Counter = std::atomic<std::uint64_t>;
  Counter acquired{0}, busy{0}, timed_out{0}, cancelled{0}, failed{0}, released{0}, renewed{0}, renew_failed{0},
      lost{0}, reconnects{0}, held{0}, waiting{0};

  void add_to(Stats& stats) const noexcept {
    const auto read = [](const Counter& c) { return c.load(std::memory_order_relaxed); };
    stats.acquired += read(acquired);
    stats.busy += read(busy);
    stats.timed_out += read(timed_out);
    stats.cancelled += read(cancelled);
    stats.failed += read(failed);
    stats.released += read(released);
    stats.renewed += read(renewed);
    stats.renew_failed += read(renew_failed);
    stats.lost += read(lost);
    stats.reconnects += read(reconnects);
    stats.held += read(held);
    stats.waiting += read(waiting);
  }
};

inline void add(Counters::Counter& counter, std::uint64_t many = 1) noexcept {
  counter.fetch_add(many, std::memory_order_relaxed);
}
inline void subtract(Counters::Counter& counter) noexcept {
  counter.fetch_sub(1, std::memory_order_relaxed);
}

}  // namespace dlock::detail

// What this process uses up.
#pragma once

#include <chrono>
#include <cstdint>

namespace dlock::bench {

// Of all its threads so far, in user space and in the kernel.
[[nodiscard]] std::chrono::nanoseconds processor_time();

struct ContextSwitches {
  std::uint64_t voluntary;    // a thread went to sleep
  std::uint64_t involuntary;  // it had to make way for another

  [[nodiscard]] std::uint64_t all() const noexcept { return voluntary + involuntary; }
};

// Of all its threads so far.
[[nodiscard]] ContextSwitches context_switches();

// Memory that it has allocated and not freed. 0 under a sanitizer, which has an allocator of its own.
[[nodiscard]] double allocated_bytes();

}  // namespace dlock::bench

// This process's use of processors and memory.
#pragma once

#include <chrono>
#include <cstdint>

namespace dlock::bench {

// By all its threads so far, including those that have ended.
struct Usage {
  std::chrono::nanoseconds processor_time;  // in user space and in the kernel
  std::uint64_t voluntary_switches;         // a thread went to sleep
  std::uint64_t involuntary_switches;       // the kernel preempted a thread

  [[nodiscard]] std::uint64_t switches() const noexcept { return voluntary_switches + involuntary_switches; }
};
[[nodiscard]] Usage usage();

// Memory that is allocated now. 0 under a sanitizer, which has its own allocator.
[[nodiscard]] double allocated_bytes();

}  // namespace dlock::bench

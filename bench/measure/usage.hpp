// What this process uses up.
#pragma once

#include <chrono>

namespace dlock::bench {

// Of all its threads so far, in user space and in the kernel.
[[nodiscard]] std::chrono::nanoseconds processor_time();

// Memory that it has allocated and not freed. 0 under a sanitizer, which has an allocator of its own.
[[nodiscard]] double allocated_bytes();

}  // namespace dlock::bench

// How often this program's threads have called operator new, which it replaces.
#pragma once

#include <cstdint>

namespace bench {

// Counts all threads so far, also those that have ended. Calls of other threads at the same time may be missing.
[[nodiscard]] std::uint64_t allocations() noexcept;

}  // namespace bench

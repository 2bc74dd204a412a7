// How often this program's threads have called operator new, which it replaces.
#pragma once

#include <cstdint>

namespace bench {

// Counts all threads so far, including those that have ended. Concurrent calls may be missing.
[[nodiscard]] std::uint64_t allocations() noexcept;

}  // namespace bench

// How often this program's threads have called operator new, which it replaces.
#pragma once

#include <cstdint>

namespace bench {

// Of all threads so far, also of those that have ended. What other threads do at the same time may be missing.
[[nodiscard]] std::uint64_t allocations() noexcept;

}  // namespace bench

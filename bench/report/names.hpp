// What measurements are called.
#pragma once

#include <string>
#include <string_view>

#include "bench/report/result.hpp"

namespace dlock::bench {

// "throughput, 64 callers", "distance, 5 ms round trip, 8 waiters, by hand"
[[nodiscard]] std::string name_of(const Measurement& measurement);

}  // namespace dlock::bench

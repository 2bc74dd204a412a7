// The machine and the program of a measurement.
#pragma once

#include "bench/report/result.hpp"

namespace dlock::bench {

// Processor, memory, kernel, compiler, version and revision of dlock, as far as they are known.
[[nodiscard]] Settings environment();

// Figures of an unoptimised program mean nothing.
[[nodiscard]] bool optimised() noexcept;

}  // namespace dlock::bench

// The machine and the program that measured.
#pragma once

#include "bench/report/result.hpp"

namespace dlock::bench {

// Processor, memory, kernel, compiler, version and revision of dlock, each where it can be found out.
[[nodiscard]] Settings environment();

// Figures of a program that the compiler has not optimised say nothing.
[[nodiscard]] bool optimised() noexcept;

}  // namespace dlock::bench

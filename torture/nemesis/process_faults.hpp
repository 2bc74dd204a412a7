// Faults of processes, aimed by the board: holders and waiters that are stopped or killed.
#pragma once

#include <cstdint>
#include <vector>

#include "torture/nemesis/nemesis.hpp"

namespace dlock::torture {

// The crew and the board must outlive them.
[[nodiscard]] std::vector<Fault> process_faults(Crew& crew, const Board& board, std::uint64_t seed);

}  // namespace dlock::torture

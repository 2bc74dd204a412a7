// Faults of processes, aimed with the board: stops or kills holders and waiters.
#pragma once

#include <cstdint>
#include <vector>

#include "torture/nemesis/nemesis.hpp"

namespace dlock::torture {

// The crew and the board must outlive them.
[[nodiscard]] std::vector<Fault> process_faults(Crew& crew, const Board& board, std::uint64_t seed);

}  // namespace dlock::torture

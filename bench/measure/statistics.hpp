// Figures of several repeats, and of several contenders.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace dlock::bench {

// The middle value, or the mean of the two in the middle; 0 without values.
[[nodiscard]] double median(std::vector<double> values);

// How evenly the turns were divided: Jain's index (R. Jain, D. Chiu, W. Hawe, "A Quantitative Measure of Fairness and
// Discrimination", 1984), which is 1 if all had equally many and 1/n if one of n had all, relative to the index of the
// most even division of so many turns. So a measurement too short for all contenders to have a turn does not call a
// queue unfair. 1 without turns.
[[nodiscard]] double fairness_of_turns(std::span<const std::uint64_t> turns);

}  // namespace dlock::bench

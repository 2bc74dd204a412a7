// Figures of several repeats, and of several contenders.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace dlock::bench {

// The middle one, or the mean of the two in the middle; 0 without values.
[[nodiscard]] double median(std::vector<double> values);

// How evenly the turns were divided: Jain's index (R. Jain, D. Chiu, W. Hawe, "A Quantitative Measure of Fairness and
// Discrimination", 1984), which is 1 where all had as many and 1/n where one of n had them all, relative to the index
// of the most even division of so many turns. So a measurement that is too short for everybody to have a turn does not
// call a queue unfair. 1 without turns.
[[nodiscard]] double fairness_of_turns(std::span<const std::uint64_t> turns);

}  // namespace dlock::bench

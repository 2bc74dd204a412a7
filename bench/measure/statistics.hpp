// Figures of several repeats, and of several contenders.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace dlock::bench {

// The middle one, or the mean of the two in the middle; 0 without values.
[[nodiscard]] double median(std::vector<double> values);

// How evenly so much was divided (R. Jain, D. Chiu, W. Hawe, "A Quantitative Measure of Fairness and Discrimination",
// 1984): 1 where all got the same, 1/n where one of n got everything. 1 where there was nothing to divide.
[[nodiscard]] double jain_index(std::span<const double> shares);

// The same of turns, which cannot be divided at will: relative to the index of the most even division of so many. So a
// measurement that is too short for everybody to have a turn does not call a queue unfair.
[[nodiscard]] double fairness_of_turns(std::span<const std::uint64_t> turns);

}  // namespace dlock::bench

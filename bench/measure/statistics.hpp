// Figures of several repeats, and of several contenders.
#pragma once

#include <span>
#include <vector>

namespace dlock::bench {

// The middle one, or the mean of the two in the middle; 0 without values.
[[nodiscard]] double median(std::vector<double> values);

// How evenly so much was divided (R. Jain, D. Chiu, W. Hawe, "A Quantitative Measure of Fairness and Discrimination",
// 1984): 1 where all got the same, 1/n where one of n got everything.
[[nodiscard]] double jain_index(std::span<const double> shares);

}  // namespace dlock::bench

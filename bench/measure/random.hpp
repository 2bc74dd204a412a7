// Random numbers that are the same everywhere for the same seed, which those of <random>'s distributions are not.
#pragma once

#include <cstddef>
#include <random>
#include <vector>

namespace dlock::bench {

using Random = std::mt19937_64;

// From 0 to, but not including, 1.
[[nodiscard]] double uniform(Random& random);

// Exponentially distributed: the time until the next of events that do not know of each other.
[[nodiscard]] double exponential(Random& random, double mean);

// Zipf's distribution: a few of the numbers are drawn often, most of them seldom. The chance of the number i is
// proportional to 1 / (i + 1)^exponent.
class Zipf {
 public:
  // Draws the numbers 0 to count - 1; count must not be 0.
  Zipf(std::size_t count, double exponent);
  // Any thread, with a generator of its own.
  [[nodiscard]] std::size_t operator()(Random& random) const;

 private:
  std::vector<double> up_to_;  // the chance of each number or a smaller one
};

}  // namespace dlock::bench

// Random numbers that depend only on the seed, unlike those of <random>'s distributions.
#pragma once

#include <cstddef>
#include <random>
#include <vector>

namespace dlock::bench {

using Random = std::mt19937_64;

// From 0 to, but not including, 1.
[[nodiscard]] double uniform(Random& random);

// Exponentially distributed: the time until the next of independent events.
[[nodiscard]] double exponential(Random& random, double mean);

// Zipf's distribution: a few numbers are frequent, most are rare. The probability of the number i is proportional to 1
// / (i + 1)^exponent.
class Zipf {
 public:
  // Draws the numbers 0 to count - 1; count must not be 0.
  Zipf(std::size_t count, double exponent);
  // Any thread, each with its own generator.
  [[nodiscard]] std::size_t operator()(Random& random) const;

 private:
  std::vector<double> up_to_;  // the probability of each number or a smaller one
};

}  // namespace dlock::bench

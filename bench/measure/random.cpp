#include "bench/measure/random.hpp"

#include <algorithm>
#include <cmath>

namespace dlock::bench {

double uniform(Random& random) {
  return static_cast<double>(random() >> 11) * 0x1p-53;  // as many bits as a double has
}

double exponential(Random& random, double mean) {
  return -mean * std::log1p(-uniform(random));
}

Zipf::Zipf(std::size_t count, double exponent) {
  up_to_.reserve(count);
  double sum = 0;
  for (std::size_t i = 1; i <= count; ++i) up_to_.push_back(sum += std::pow(static_cast<double>(i), -exponent));
  for (double& chance : up_to_) chance /= sum;
}

std::size_t Zipf::operator()(Random& random) const {
  const auto found = std::upper_bound(up_to_.begin(), up_to_.end(), uniform(random));
  return std::min(static_cast<std::size_t>(found - up_to_.begin()), up_to_.size() - 1);
}

}  // namespace dlock::bench

#include "bench/measure/samples.hpp"

#include <algorithm>
#include <cmath>

namespace dlock::bench {

namespace {

double microseconds(Clock::duration value) {
  return std::chrono::duration<double, std::micro>(value).count();
}

}  // namespace

void Samples::add(const Samples& others) {
  values_.insert(values_.end(), others.values_.begin(), others.values_.end());
  sorted_ = false;
}

void Samples::sort() const {
  if (!sorted_) std::sort(values_.begin(), values_.end());
  sorted_ = true;
}

double Samples::percentile(double share) const {
  if (values_.empty()) return 0;
  sort();
  const auto count = static_cast<double>(values_.size());
  // The product of a share and a count may come out a little above the whole number that it is.
  const double rank = std::ceil(share * count * (1 - 1e-12));
  return microseconds(values_[static_cast<std::size_t>(std::clamp(rank, 1.0, count)) - 1]);
}

std::vector<CdfPoint> Samples::cdf(std::size_t points) const {
  std::vector<CdfPoint> result;
  if (values_.empty() || points == 0) return result;
  sort();
  const std::size_t count = values_.size();
  const auto total = static_cast<double>(count);
  const auto add_rank = [&](std::size_t rank) {
    const Clock::duration value = values_[rank - 1];
    const auto after = std::upper_bound(values_.begin() + static_cast<std::ptrdiff_t>(rank - 1), values_.end(), value);
    const CdfPoint point{microseconds(value), static_cast<double>(after - values_.begin()) / total};
    if (result.empty() || result.back().share < point.share) result.push_back(point);
  };
  if (count <= points || points == 1) {
    for (std::size_t rank = points == 1 ? count : 1; rank <= count; ++rank) add_rank(rank);
    return result;
  }
  // The share of slower samples falls by the same factor from point to point, from all of them to the slowest one.
  for (std::size_t i = 0; i + 1 < points; ++i) {
    const double slower = std::pow(total, -static_cast<double>(i) / static_cast<double>(points - 1));
    add_rank(std::clamp(static_cast<std::size_t>(std::llround(total * (1 - slower))), std::size_t{1}, count));
  }
  add_rank(count);
  return result;
}

}  // namespace dlock::bench

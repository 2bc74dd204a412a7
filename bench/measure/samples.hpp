// Durations, all of them kept, and their exact percentiles.
#pragma once

#include <chrono>
#include <cstddef>
#include <vector>

namespace dlock::bench {

using Clock = std::chrono::steady_clock;

struct CdfPoint {
  double microseconds;
  double share;  // of all samples that took no longer
};

class Samples {
 public:
  void add(Clock::duration value) { values_.push_back(value), sorted_ = false; }
  void add(const Samples& others);
  [[nodiscard]] std::size_t count() const noexcept { return values_.size(); }
  [[nodiscard]] bool empty() const noexcept { return values_.empty(); }

  // In microseconds; 0 without samples.

  // The value that this share of all samples does not exceed (nearest rank).
  [[nodiscard]] double percentile(double share) const;
  [[nodiscard]] double longest() const { return percentile(1); }

  // The distribution, in at most that many points, which are samples; closer together towards the slow end.
  [[nodiscard]] std::vector<CdfPoint> cdf(std::size_t points) const;

 private:
  void sort() const;

  mutable std::vector<Clock::duration> values_;
  mutable bool sorted_ = true;
};

}  // namespace dlock::bench

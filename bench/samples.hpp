// Durations, and their exact percentiles.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <vector>

namespace bench {

class Samples {
 public:
  using Clock = std::chrono::steady_clock;

  void reserve(std::size_t count) { values_.reserve(count); }
  void add(Clock::duration value) { values_.push_back(value); }
  void add(const Samples& others) { values_.insert(values_.end(), others.values_.begin(), others.values_.end()); }
  [[nodiscard]] std::size_t count() const noexcept { return values_.size(); }

  // The value that this share of all values does not exceed, in microseconds; 0 without values.
  [[nodiscard]] double percentile(double share) {
    if (values_.empty()) return 0;
    const auto rank = static_cast<std::size_t>(share * static_cast<double>(values_.size() - 1) + 0.5);
    const auto at = values_.begin() + static_cast<std::ptrdiff_t>(rank);
    std::nth_element(values_.begin(), at, values_.end());
    return std::chrono::duration<double, std::micro>(*at).count();
  }

 private:
  std::vector<Clock::duration> values_;
};

// The middle one; for figures of a few repetitions.
[[nodiscard]] inline double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values.empty() ? 0 : values[values.size() / 2];
}

// One turn of that length, of calls of which the first ones do not count: how quickly the machine wakes whoever sleeps
// depends on what it did just before.
template <class F>
void take_turn(Samples& samples, int warm_up, std::chrono::milliseconds length, F&& call) {
  for (int i = 0; i < warm_up; ++i) call();
  const auto end = Samples::Clock::now() + length;
  for (auto start = Samples::Clock::now(); start < end;) {
    call();
    const auto now = Samples::Clock::now();
    samples.add(now - start);
    start = now;
  }
}

// A line of the table of one thread.
inline void print_one_thread(const char* who, Samples& samples) {
  std::printf("one thread, %-31s  p50 %7.1f us   p99 %7.1f us   (%zu samples)\n", who, samples.percentile(0.5),
              samples.percentile(0.99), samples.count());
}

}  // namespace bench

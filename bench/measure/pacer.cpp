#include "bench/measure/pacer.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <thread>

namespace dlock::bench {

namespace {

// The longest time until a stop is noticed.
constexpr std::chrono::milliseconds longest_sleep{50};

// A sleeping thread wakes up late, by the timer's slack and the processor's own delay. That would count as the
// service's time, so the last part of the wait is a busy wait.
constexpr std::chrono::microseconds awake_before{200};

constexpr double greatest_rate = 1e7;  // so that the calls of a time can be counted
constexpr double longest_gap = 1e14;   // ns

class RealTime final : public Timeline {
 public:
  Clock::time_point now() override { return Clock::now(); }
  void sleep_until(Clock::time_point time) override {
    if (time - Clock::now() > awake_before) std::this_thread::sleep_until(time - awake_before);
    while (Clock::now() < time) {
    }
  }
};

}  // namespace

Timeline& real_time() {
  static RealTime instance;
  return instance;
}

Pacer::Pacer(Timeline& timeline, double rate, std::uint64_t seed)
    : timeline_(timeline), mean_gap_(1e9 / rate), random_(seed), due_(timeline.now()) {
  if (std::isnan(rate) || rate <= 0 || rate > greatest_rate) {
    throw std::invalid_argument("the rate of arrivals must be above 0 and at most ten million a second");
  }
  schedule_next();
}

void Pacer::schedule_next() {
  const double gap = std::clamp(exponential(random_, mean_gap_), 1.0, longest_gap);
  due_ += std::chrono::nanoseconds(std::llround(gap));
}

bool Pacer::await_next(const std::stop_token& stop) {
  for (auto now = timeline_.now(); now < due_ && !stop.stop_requested(); now = timeline_.now()) {
    timeline_.sleep_until(std::min(due_, now + longest_sleep));
  }
  return !stop.stop_requested();
}

Clock::duration Pacer::finish() {
  const Clock::duration taken = timeline_.now() - due_;
  schedule_next();
  return taken;
}

std::vector<Clock::duration> Pacer::give_up(Clock::time_point end) {
  std::vector<Clock::duration> waiting;
  for (; due_ < end; schedule_next()) waiting.push_back(end - due_);
  return waiting;
}

}  // namespace dlock::bench

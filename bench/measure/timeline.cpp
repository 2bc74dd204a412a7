#include "bench/measure/timeline.hpp"

#include <thread>

namespace dlock::bench {

namespace {

// A thread is woken late by the timer's slack and by what the processor needs to wake up. That would count as the
// service's time, so the rest of the way goes without sleep.
constexpr std::chrono::microseconds awake_before{200};

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

}  // namespace dlock::bench

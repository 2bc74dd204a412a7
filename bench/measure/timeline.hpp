// Time, as what waits for the next arrival sees it: tests have one of their own.
#pragma once

#include "bench/measure/samples.hpp"

namespace dlock::bench {

class Timeline {
 public:
  Timeline() = default;
  Timeline(const Timeline&) = delete;
  Timeline& operator=(const Timeline&) = delete;
  virtual ~Timeline() = default;

  [[nodiscard]] virtual Clock::time_point now() = 0;
  virtual void sleep_until(Clock::time_point time) = 0;
};

// Any thread. Does not oversleep as long as a processor is free.
[[nodiscard]] Timeline& real_time();

}  // namespace dlock::bench

// An open loop: calls are due at times that do not depend on how long earlier ones took, and the time of each counts
// from when it was due. A closed loop would not make the calls that a slow one delays, and so would hide the time that
// users would have to wait (G. Tene calls that coordinated omission).
#pragma once

#include <cstdint>
#include <stop_token>
#include <vector>

#include "bench/measure/random.hpp"
#include "bench/measure/samples.hpp"

namespace dlock::bench {

// The pacer's clock and sleep; tests have their own.
class Timeline {
 public:
  Timeline() = default;
  Timeline(const Timeline&) = delete;
  Timeline& operator=(const Timeline&) = delete;
  virtual ~Timeline() = default;

  [[nodiscard]] virtual Clock::time_point now() = 0;
  virtual void sleep_until(Clock::time_point time) = 0;
};

// Any thread. Does not oversleep while a processor is free.
[[nodiscard]] Timeline& real_time();

// Arrivals of a Poisson process. By one thread at a time.
class Pacer {
 public:
  // rate: calls per second; the first is due one gap from now. The same seed gives the same gaps. Throws
  // std::invalid_argument unless the rate is above 0 and at most ten million.
  Pacer(Timeline& timeline, double rate, std::uint64_t seed);

  // Sleeps until the next call is due; returns at once if that has passed. False: a stop was requested before.
  [[nodiscard]] bool await_next(const std::stop_token& stop);
  // The call has ended: the time since it was due.
  [[nodiscard]] Clock::duration finish();

  // For each call that was due before `end` and has not ended, how long it has been due. These never begin afterwards.
  [[nodiscard]] std::vector<Clock::duration> give_up(Clock::time_point end);

 private:
  void schedule_next();

  Timeline& timeline_;
  double mean_gap_;  // ns
  Random random_;
  Clock::time_point due_;  // of the call in progress, or the next one
};

}  // namespace dlock::bench

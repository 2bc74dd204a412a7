// The clocks of a simulation: its own, which histories are on, and those of processes, which run faster or slower and
// began at another time.
#pragma once

#include <chrono>
#include <cstdint>

#include <dlock/clock.hpp>

namespace dlock::simulation {

// The simulation's own time. Clocks read it; the simulation moves it.
struct SimulatedTime {
  static constexpr TimePoint start{std::chrono::hours(24)};
  TimePoint now = start;
};

// Counts `rate` microseconds in a second of the simulation's. The service's clock runs at the true rate.
class SimulatedClock final : public Clock {
 public:
  using nanoseconds = std::chrono::nanoseconds;

  static constexpr std::int64_t true_rate = 1'000'000;
  explicit SimulatedClock(const SimulatedTime& time, std::int64_t rate = true_rate, nanoseconds offset = {})
      : time_(time), rate_(rate), first_(SimulatedTime::start + offset) {}

  [[nodiscard]] TimePoint now() const noexcept override { return at(time_.now); }
  // Runs with the simulation until it is stepped.
  [[nodiscard]] std::chrono::system_clock::time_point wall_now() const noexcept override {
    constexpr std::chrono::sys_days first_day = std::chrono::year(2024) / std::chrono::January / 1;
    return std::chrono::system_clock::time_point(first_day) + (time_.now - SimulatedTime::start) + wall_offset_;
  }
  [[nodiscard]] bool runs_by_itself() const noexcept override { return false; }
  void step_wall(nanoseconds by) { wall_offset_ += by; }

  // The reading of this clock at a time of the simulation's.
  [[nodiscard]] TimePoint at(TimePoint time) const noexcept {
    if (time - SimulatedTime::start > far_away) return TimePoint::max();
    return first_ + nanoseconds((time - SimulatedTime::start).count() * rate_ / true_rate);
  }
  // When this clock shows a time, or more.
  [[nodiscard]] TimePoint when(TimePoint shown) const noexcept {
    if (shown > first_ + far_away) return TimePoint::max();
    if (shown <= first_) return SimulatedTime::start;
    return SimulatedTime::start + scale_up(shown - first_, true_rate, rate_);
  }
  // Its reading at that time, or a little later: when(not_before(t)) >= t.
  [[nodiscard]] TimePoint not_before(TimePoint time) const noexcept {
    if (time > SimulatedTime::start + far_away) return TimePoint::max();
    if (time <= SimulatedTime::start) return first_;
    return first_ + scale_up(time - SimulatedTime::start, rate_, true_rate);
  }

 private:
  // No simulation lasts that long, and products do not overflow. Later times are as good as never.
  static constexpr nanoseconds far_away = std::chrono::minutes(60);

  static constexpr nanoseconds scale_up(nanoseconds time, std::int64_t by, std::int64_t per) {
    return nanoseconds((time.count() * by + per - 1) / per);
  }

  const SimulatedTime& time_;
  const std::int64_t rate_;
  const TimePoint first_;
  nanoseconds wall_offset_{};
};

}  // namespace dlock::simulation

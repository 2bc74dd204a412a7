// The clocks of a simulation: its own, which histories are on; that of the lock service; and those of the processes,
// which run faster or slower and began at another time.
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

// A wall clock that runs with the simulation until it is stepped.
class WallClock : public Clock {
 public:
  explicit WallClock(const SimulatedTime& time) : time_(time) {}

  [[nodiscard]] std::chrono::system_clock::time_point wall_now() const noexcept override;
  [[nodiscard]] bool runs_by_itself() const noexcept override { return false; }
  void step_wall(std::chrono::nanoseconds by) { wall_offset_ += by; }

 protected:
  [[nodiscard]] TimePoint simulated_now() const noexcept { return time_.now; }

 private:
  const SimulatedTime& time_;
  std::chrono::nanoseconds wall_offset_{};
};

class ServiceClock final : public WallClock {
 public:
  using WallClock::WallClock;
  [[nodiscard]] TimePoint now() const noexcept override { return simulated_now(); }
};

// Counts `rate` microseconds in a second of the simulation's.
class ProcessClock final : public WallClock {
 public:
  static constexpr std::int64_t true_rate = 1'000'000;
  ProcessClock(const SimulatedTime& time, std::int64_t rate, std::chrono::nanoseconds offset)
      : WallClock(time), rate_(rate), offset_(offset) {}

  [[nodiscard]] TimePoint now() const noexcept override { return at(simulated_now()); }

  // What this clock shows at a time of the simulation's.
  [[nodiscard]] TimePoint at(TimePoint time) const noexcept;
  // When this clock shows a time, or more.
  [[nodiscard]] TimePoint when(TimePoint shown) const noexcept;
  // What it shows then, or a little later: when(not_before(t)) >= t.
  [[nodiscard]] TimePoint not_before(TimePoint time) const noexcept;

 private:
  const std::int64_t rate_;
  const std::chrono::nanoseconds offset_;
};

}  // namespace dlock::simulation

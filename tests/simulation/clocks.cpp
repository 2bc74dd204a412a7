#include "tests/simulation/clocks.hpp"

namespace dlock::simulation {
namespace {

using std::chrono::nanoseconds;

// No simulation lasts that long, and the products below do not overflow. Later times are as good as never.
constexpr nanoseconds far_away = std::chrono::minutes(60);

constexpr nanoseconds scale(nanoseconds time, std::int64_t by, std::int64_t per) {
  return nanoseconds(time.count() * by / per);
}

constexpr nanoseconds scale_up(nanoseconds time, std::int64_t by, std::int64_t per) {
  return nanoseconds((time.count() * by + per - 1) / per);
}

}  // namespace

std::chrono::system_clock::time_point WallClock::wall_now() const noexcept {
  constexpr std::chrono::sys_days first_day = std::chrono::year(2024) / std::chrono::January / 1;
  return std::chrono::system_clock::time_point(first_day) + (time_.now - SimulatedTime::start) + wall_offset_;
}

TimePoint ProcessClock::at(TimePoint time) const noexcept {
  if (time - SimulatedTime::start > far_away) return TimePoint::max();
  return SimulatedTime::start + offset_ + scale(time - SimulatedTime::start, rate_, true_rate);
}

TimePoint ProcessClock::when(TimePoint shown) const noexcept {
  const TimePoint first = SimulatedTime::start + offset_;
  if (shown > first + far_away) return TimePoint::max();
  if (shown <= first) return SimulatedTime::start;
  return SimulatedTime::start + scale_up(shown - first, true_rate, rate_);
}

TimePoint ProcessClock::not_before(TimePoint time) const noexcept {
  if (time > SimulatedTime::start + far_away) return TimePoint::max();
  if (time <= SimulatedTime::start) return SimulatedTime::start + offset_;
  return SimulatedTime::start + offset_ + scale_up(time - SimulatedTime::start, rate_, true_rate);
}

}  // namespace dlock::simulation

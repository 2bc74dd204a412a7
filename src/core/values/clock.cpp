#include <dlock/clock.hpp>

#include <time.h>

#include <algorithm>
#include <cstddef>
#include <utility>

#include <dlock/duration.hpp>

namespace dlock {

LeaseClock::time_point LeaseClock::now() noexcept {
  timespec t{};
  (void)clock_gettime(CLOCK_BOOTTIME, &t);  // cannot fail: every supported kernel has this clock
  return time_point(std::chrono::seconds(t.tv_sec) + std::chrono::nanoseconds(t.tv_nsec));
}

namespace {

// Timers that arm each other for the same instant would go on for ever, and so would other threads that use a client.
constexpr int most_rounds = 100;

class BoottimeClock final : public Clock {
 public:
  [[nodiscard]] TimePoint now() const noexcept override { return LeaseClock::now(); }
  [[nodiscard]] std::chrono::system_clock::time_point wall_now() const noexcept override {
    return std::chrono::system_clock::now();
  }
};

}  // namespace

std::shared_ptr<Clock> boottime_clock() {
  return std::make_shared<BoottimeClock>();  // it has no state that would have to be shared
}

ManualClock::ManualClock() noexcept
    : now_(std::chrono::hours(24)), wall_(std::chrono::sys_days(std::chrono::year(2024) / std::chrono::January / 1)) {}

TimePoint ManualClock::now() const noexcept {
  const std::lock_guard lock(mutex_);
  return now_;
}

std::chrono::system_clock::time_point ManualClock::wall_now() const noexcept {
  const std::lock_guard lock(mutex_);
  return wall_;
}

void ManualClock::add_listener(std::weak_ptr<ClockListener> listener) {
  const std::lock_guard lock(mutex_);
  std::erase_if(listeners_, [](const auto& known) { return known.expired(); });
  listeners_.push_back(std::move(listener));
}

void ManualClock::advance(std::chrono::nanoseconds by) {
  std::vector<std::weak_ptr<ClockListener>> listeners;
  {
    const std::lock_guard lock(mutex_);
    if (by <= std::chrono::nanoseconds::zero()) return;
    now_ = saturating_add(now_, by);
    wall_ = saturating_add(wall_, by);
    listeners = listeners_;
  }
  // A listener may give work to another that has been called before. All are idle once a whole round of calls has
  // found that none has run anything since the round before.
  std::vector<std::uint64_t> before(listeners.size());
  for (int round = 0; round < most_rounds; ++round) {
    std::vector<std::uint64_t> ran(listeners.size());
    for (std::size_t i = 0; i < listeners.size(); ++i) {
      if (const auto listener = listeners[i].lock()) ran[i] = listener->clock_moved();
    }
    if (ran == before) return;
    before = std::move(ran);
  }
}

void ManualClock::step_wall(std::chrono::nanoseconds by) {
  const std::lock_guard lock(mutex_);
  wall_ = saturating_add(wall_, by);
}

}  // namespace dlock

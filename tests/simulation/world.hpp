// The state that all parts of a simulation share: its time and clocks, its chance, the plan that its seed makes, what
// is to happen, and what did.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <dlock/clock.hpp>
#include <dlock/lock_kind.hpp>
#include <dlock/spi/executor.hpp>

#include "engine/timer_queue.hpp"
#include "tests/support/mutants/mutation.hpp"
#include "torture/checker/checker.hpp"
#include "torture/dice.hpp"
#include "torture/history/event.hpp"

namespace dlock::simulation {

using mutants::Mutation;
using torture::Dice;
using torture::Event;
using torture::Hole;
using torture::Kind;
using torture::Rule;
using torture::Rules;

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

class World {
 public:
  explicit World(std::uint64_t seed, Mutation broken = Mutation::none) : dice(seed), mutation(broken) {}

  Dice dice;
  SimulatedTime time;
  const Mutation mutation;

  [[nodiscard]] TimePoint now() const { return time.now; }

  // Adds to the history, with the time of now.
  void note(Event event) {
    if (over_) return;
    event.at = time.now;
    history_.push_back(std::move(event));
  }
  [[nodiscard]] std::vector<Event> take_history() {
    over_ = true;  // what is still torn down is no part of it
    return std::move(history_);
  }

  // Happens whatever becomes of the processes.
  void later(std::chrono::nanoseconds delay, Executor::Task task) { (void)coming_.add(now() + delay, std::move(task)); }
  [[nodiscard]] TimePoint next() const { return coming_.next().value_or(TimePoint::max()); }
  void run_due() {
    while (auto task = coming_.pop_due(now())) (*task)();
  }

 private:
  engine::TimerQueue coming_;
  std::vector<Event> history_;
  bool over_ = false;
};

inline constexpr std::chrono::nanoseconds response_timeout = std::chrono::milliseconds(500);
inline constexpr std::chrono::nanoseconds connect_timeout = std::chrono::seconds(1);
inline constexpr std::chrono::nanoseconds longest_lease = std::chrono::seconds(3);

// Names are unlike each other, whatever kinds they are of.
struct SimulatedLock {
  std::string name;
  LockKind lock_kind = LockKind::lock;
  std::uint32_t permits = 1;
};

struct Plan {
  std::uint64_t processes{};
  std::uint64_t workers{};  // of each process
  std::vector<SimulatedLock> locks{};
  std::int64_t slowest_clock{};             // the clocks' rates are between this one
  std::int64_t fastest_clock{};             // and this one
  std::chrono::nanoseconds chaos{};         // how long things are broken
  bool lets_go{};                           // of answers that are held, now and then
  std::chrono::nanoseconds calm{};          // how long the nemesis waits at most before its next deed
  std::chrono::nanoseconds longest_rest{};  // of a worker, between two acquires
  std::chrono::nanoseconds min_lease{};     // of an acquire
};

inline Plan make_plan(Dice& dice, const std::vector<LockKind>& kinds, std::chrono::nanoseconds min_lease) {
  using namespace std::chrono_literals;
  // Within 1 % of each other, and of the service's clock.
  constexpr std::int64_t spread = SimulatedClock::true_rate / 1000 * 95 / 10;
  const auto slowest = SimulatedClock::true_rate - static_cast<std::int64_t>(dice.below(std::uint64_t{spread} + 1));
  Plan plan{.processes = 2 + dice.below(4),
            .workers = 1 + dice.below(3),
            .locks = std::vector<SimulatedLock>(1 + dice.below(3)),
            .slowest_clock = slowest,
            .fastest_clock = slowest + spread,
            .min_lease = min_lease};
  for (char name = 'a'; SimulatedLock & lock : plan.locks) {
    lock = {.name = std::string(1, name++), .lock_kind = dice.pick(kinds)};
    if (dice.chance(30)) lock.lock_kind = kinds.front();  // for acquires of two plain locks
    if (lock.lock_kind == LockKind::semaphore) lock.permits = 1 + static_cast<std::uint32_t>(dice.below(4));
  }
  plan.chaos = dice.between(1s, 15s);
  plan.lets_go = dice.chance(50);
  plan.calm = dice.between(50ms, 1s);
  plan.longest_rest = dice.between(10ms, 300ms);
  return plan;
}

}  // namespace dlock::simulation

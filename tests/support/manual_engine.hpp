// An engine on the test's thread: time advances only on request, nothing runs by itself, everything is deterministic.
//
//   auto engine = std::make_shared<test::ManualEngine>(seed);
//   auto core = detail::ClientCore::create(engine, ...);
//   engine->advance(10s);          // runs every timer on the way, in order, at its own time
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <utility>

#include <dlock/clock.hpp>
#include <dlock/duration.hpp>

#include "tests/support/queued_engine.hpp"

namespace dlock::test {

class ManualEngine final : public dlock::test::QueuedEngine {
 public:
  explicit ManualEngine(std::uint64_t seed = 1, std::shared_ptr<ManualClock> clock = std::make_shared<ManualClock>())
      : dlock::test::QueuedEngine(seed), clock_(std::move(clock)) {}

  // Runs everything that is due until then, and sets the clock to each deadline.
  void advance(std::chrono::nanoseconds by) {
    run();
    const TimePoint end = saturating_add(now(), by);
    while (next_timer() && *next_timer() <= end) {
      clock_->advance(*next_timer() - now());
      run();
    }
    clock_->advance(end - now());
    run();
  }

  // Advances the clock without running anything on the way, as if the process had been stopped; then runs what is due.
  void sleep_through(std::chrono::nanoseconds by) {
    clock_->advance(by);
    run();
  }

  [[nodiscard]] ManualClock& manual_clock() noexcept { return *clock_; }
  [[nodiscard]] const std::shared_ptr<ManualClock>& shared_clock() const noexcept { return clock_; }

  // --- Engine ---
  [[nodiscard]] const Clock& clock() const noexcept override { return *clock_; }
  // Advances time until the event is set. A real engine would block for ever if nothing is left to do.
  bool wait(util::Event& event, std::optional<std::chrono::nanoseconds> limit) override {
    if (event.is_set()) return true;
    if (must_not_block()) throw std::logic_error("waiting on the engine thread");
    const TimePoint end = saturating_add(now(), limit.value_or(std::chrono::nanoseconds::max()));
    run();
    while (!event.is_set()) {
      if (!next_timer() && !limit) throw std::logic_error("waiting for an event that nothing will set");
      const TimePoint next = std::min(end, next_timer().value_or(end));
      clock_->advance(next - now());
      run();
      if (next >= end) break;
    }
    return event.is_set();
  }

 private:
  std::shared_ptr<ManualClock> clock_;
};

}  // namespace dlock::test

// An engine on a simulated clock. The simulation decides when it runs.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include <dlock/clock.hpp>

#include "torture/rig/queued_engine.hpp"

namespace dlock::simulation {

class SimulatedEngine final : public rig::QueuedEngine {
 public:
  SimulatedEngine(std::uint64_t seed, std::shared_ptr<const Clock> clock)
      : QueuedEngine(seed), clock_(std::move(clock)) {}

  // Whether it has something to run now.
  [[nodiscard]] bool ready() const {
    const auto timer = next_timer();
    return queued() > 0 || (timer && *timer <= now());
  }

  // --- Engine ---
  [[nodiscard]] const Clock& clock() const noexcept override { return *clock_; }
  // Nothing in a simulation blocks: what can be done at once is done.
  bool wait(util::Event& event, std::optional<std::chrono::nanoseconds> /*limit*/) override {
    if (!must_not_block()) run();
    return event.is_set();
  }

 private:
  const std::shared_ptr<const Clock> clock_;
};

}  // namespace dlock::simulation

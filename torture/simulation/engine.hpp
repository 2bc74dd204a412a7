// The engine of a simulated process, on its own clock. The simulation decides when it runs.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include "torture/rig/queued_engine.hpp"
#include "torture/simulation/clocks.hpp"

namespace dlock::torture::simulation {

class ProcessEngine final : public rig::QueuedEngine {
 public:
  ProcessEngine(std::uint64_t seed, std::shared_ptr<ProcessClock> clock)
      : QueuedEngine(seed), clock_(std::move(clock)) {}

  // --- Engine ---
  [[nodiscard]] const Clock& clock() const noexcept override { return *clock_; }
  // Nothing in a simulation blocks: what can be done at once is done.
  bool wait(util::Event& event, std::optional<std::chrono::nanoseconds> /*limit*/) override {
    if (!must_not_block()) run();
    return event.is_set();
  }

 private:
  const std::shared_ptr<ProcessClock> clock_;
};

}  // namespace dlock::torture::simulation

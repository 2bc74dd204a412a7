// The engine of a simulated process, on its own clock. The simulation decides when it runs.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include "tests/fault/simulation/clocks.hpp"
#include "tests/support/queued_engine.hpp"

namespace dlock::fault::simulation {

class ProcessEngine final : public test::QueuedEngine {
 public:
  ProcessEngine(std::uint64_t seed, std::shared_ptr<ProcessClock> clock)
      : QueuedEngine(seed), clock_(std::move(clock)) {}

  // --- Engine ---
  [[nodiscard]] const Clock& clock() const noexcept override { return *clock_; }
  // Nobody in a simulation blocks: what can be done at once is done.
  bool wait(util::Event& event, std::optional<std::chrono::nanoseconds> /*limit*/) override {
    if (!must_not_block()) run();
    return event.is_set();
  }

 private:
  const std::shared_ptr<ProcessClock> clock_;
};

}  // namespace dlock::fault::simulation

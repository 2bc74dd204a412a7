// An engine on a simulated clock. The simulation decides when it runs.
#pragma once

#include <poll.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <system_error>
#include <utility>
#include <vector>

#include <dlock/clock.hpp>
#include <dlock/spi/executor.hpp>
#include <dlock/spi/lifetime.hpp>

#include "tests/support/queued_engine.hpp"

namespace dlock::simulation {

class SimulatedEngine final : public dlock::test::QueuedEngine {
 public:
  SimulatedEngine(std::uint64_t seed, std::shared_ptr<const Clock> clock)
      : QueuedEngine(seed), clock_(std::move(clock)) {}

  // Whether it has something to run now.
  [[nodiscard]] bool ready() {
    const auto timer = next_timer();
    return queued() > 0 || (timer && *timer <= now()) || post_readable();
  }

  // --- Engine ---
  [[nodiscard]] const Clock& clock() const noexcept override { return *clock_; }
  // Nothing in a simulation blocks: what can be done at once is done.
  bool wait(util::Event& event, std::optional<std::chrono::nanoseconds> /*limit*/) override {
    if (!must_not_block()) run();
    return event.is_set();
  }
  [[nodiscard]] std::unique_ptr<Descriptor> watch(int fd) override { return std::make_unique<Watched>(*this, fd); }

 private:
  class Watched final : public Descriptor {
   public:
    Watched(SimulatedEngine& engine, int fd) : engine_(engine), fd_(fd) { engine.watched_.push_back(this); }
    ~Watched() override { std::erase(engine_.watched_, this); }
    void async_wait(Interest /*readable*/, std::function<void(std::error_code)> handler) override {
      handler_ = std::move(handler);
    }

    bool post_if_readable() {
      pollfd ready{.fd = fd_, .events = POLLIN, .revents = 0};
      if (!handler_ || ::poll(&ready, 1, 0) <= 0) return false;
      return engine_.submit(lifetime_.guard([handler = std::exchange(handler_, nullptr)] { handler({}); }));
    }

   private:
    SimulatedEngine& engine_;
    const int fd_;
    std::function<void(std::error_code)> handler_;
    Lifetime lifetime_;
  };

  // The handlers of descriptors that can be read become tasks.
  bool post_readable() {
    bool any = false;
    for (Watched* const each : watched_) any = each->post_if_readable() || any;
    return any;
  }

  std::vector<Watched*> watched_;
  const std::shared_ptr<const Clock> clock_;
};

}  // namespace dlock::simulation

// An engine that the test's own thread drives: it reads descriptors, runs tasks and lets timers fire only when told to.
#pragma once

#include <poll.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <system_error>
#include <utility>

#include <dlock/error.hpp>

#include "tests/support/queued_engine.hpp"

namespace dlock::file::test {

class PollExecutor final : public dlock::test::QueuedEngine {
 public:
  PollExecutor() : QueuedEngine(4) {}

  // Runs all that is due: posted tasks, timers, and the descriptor while it is readable.
  void run() {
    for (QueuedEngine::run(); poll_for(0); QueuedEngine::run()) std::exchange(handler_, nullptr)(std::error_code());
  }
  // Lets time pass, stopping at every timer on the way.
  void advance(std::chrono::nanoseconds by) {
    run();
    for (const TimePoint end = now() + by; now() < end; run()) {
      clock_.advance(std::min(end, next_timer().value_or(end)) - now());
    }
  }
  // Lets time pass as if the process had been stopped.
  void sleep_through(std::chrono::nanoseconds by) {
    clock_.advance(by);
    run();
  }
  // Waits until the descriptor is readable, or for that long.
  void wait(std::chrono::milliseconds limit) const { (void)poll_for(static_cast<int>(limit.count())); }
  // The descriptor fails.
  void fail() { std::exchange(handler_, nullptr)(std::make_error_code(std::errc::io_error)); }
  bool refuse_descriptors = false;

  [[nodiscard]] const Clock& clock() const noexcept override { return clock_; }
  [[nodiscard]] std::unique_ptr<dlock::Descriptor> watch(int fd) override {
    if (refuse_descriptors) throw Error(errc::unavailable, "no room");
    fd_ = fd;
    return std::make_unique<Watched>(*this);
  }
  bool wait(util::Event& /*event*/, std::optional<std::chrono::nanoseconds> /*limit*/) override {
    throw std::logic_error("only tasks use it");
  }

 private:
  class Watched final : public dlock::Descriptor {
   public:
    explicit Watched(PollExecutor& executor) : executor_(executor) {}
    ~Watched() override { executor_.handler_ = nullptr; }
    void async_wait(Interest, std::function<void(std::error_code)> handler) override {
      executor_.handler_ = std::move(handler);
    }

   private:
    PollExecutor& executor_;
  };

  [[nodiscard]] bool poll_for(int milliseconds) const {
    pollfd ready{.fd = handler_ ? fd_ : -1, .events = POLLIN, .revents = 0};
    return ::poll(&ready, 1, milliseconds) > 0;
  }

  ManualClock clock_;
  int fd_ = -1;
  std::function<void(std::error_code)> handler_;
};

}  // namespace dlock::file::test

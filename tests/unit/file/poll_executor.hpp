// An executor that the test's own thread drives: it reads descriptors, runs tasks and lets timers fire only when told
// to.
#pragma once

#include <poll.h>

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <system_error>
#include <utility>

#include <dlock/error.hpp>
#include <dlock/spi/executor.hpp>

#include "engine/timer_queue.hpp"

namespace dlock::file::test {

class PollExecutor final : public Executor {
 public:
  // Runs all that is due: posted tasks, timers, and the descriptor if it is readable.
  void run() {
    for (;;) {
      if (!tasks_.empty()) {
        const Task task = std::move(tasks_.front());
        tasks_.pop_front();
        task();
      } else if (const auto timer = timers_.pop_due(now())) {
        (*timer)();
      } else if (poll_for(0)) {
        std::exchange(handler_, nullptr)(std::error_code());
      } else {
        return;
      }
    }
  }
  // Lets time pass, stopping at every timer on the way.
  void advance(std::chrono::nanoseconds by) {
    run();
    const TimePoint end = now() + by;
    while (timers_.next() && *timers_.next() <= end) {
      clock_.advance(*timers_.next() - now());
      run();
    }
    clock_.advance(end - now());
  }
  // Waits until the descriptor is readable, or for that long.
  void wait(std::chrono::milliseconds limit) const { (void)poll_for(static_cast<int>(limit.count())); }
  // The descriptor fails.
  void fail() { std::exchange(handler_, nullptr)(std::make_error_code(std::errc::io_error)); }
  bool refuse_descriptors = false;

  [[nodiscard]] const Clock& clock() const noexcept override { return clock_; }
  void post(Task task) override { tasks_.push_back(std::move(task)); }
  [[nodiscard]] TimerId schedule(TimePoint at, Task task) override { return timers_.add(at, std::move(task)); }
  void cancel(TimerId id) noexcept override { timers_.cancel(id); }
  [[nodiscard]] std::uint64_t random() override { return 4; }
  [[nodiscard]] std::unique_ptr<dlock::Descriptor> watch(int fd) override {
    if (refuse_descriptors) throw Error(errc::unavailable, "no room");
    fd_ = fd;
    return std::make_unique<Watched>(*this);
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
  engine::TimerQueue timers_;
  std::deque<Task> tasks_;
  int fd_ = -1;
  std::function<void(std::error_code)> handler_;
};

}  // namespace dlock::file::test

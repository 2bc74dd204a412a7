// An engine that the test's own thread drives: time stands still, nothing runs by itself, everything is deterministic.
//
//   auto engine = std::make_shared<test::ManualEngine>(seed);
//   auto core = detail::ClientCore::create(engine, ...);
//   engine->advance(10s);          // runs every timer on the way, in order, at its own time
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <random>
#include <stdexcept>
#include <utility>

#include <dlock/clock.hpp>

#include "engine/engine.hpp"
#include "engine/timer_queue.hpp"

namespace dlock::test {

class ManualEngine final : public engine::Engine {
 public:
  explicit ManualEngine(std::uint64_t seed = 1, std::shared_ptr<ManualClock> clock = std::make_shared<ManualClock>())
      : clock_(std::move(clock)), random_(seed) {}

  // Runs everything that is due now.
  void run() {
    for (;;) {
      if (!queue_.empty()) {
        const Task task = std::move(queue_.front());
        queue_.pop_front();
        perform(task);
      } else if (const auto timer = timers_.pop_due(now())) {
        perform(*timer);
      } else {
        return;
      }
    }
  }

  // Runs everything that becomes due until then, stopping the clock at each deadline.
  void advance(std::chrono::nanoseconds by) {
    run();
    const TimePoint end = saturating_add(now(), by);
    while (timers_.next() && *timers_.next() <= end) {
      clock_->advance(*timers_.next() - now());
      run();
    }
    clock_->advance(end - now());
  }

  // Moves time without running anything on the way, as if the process had been stopped; then runs what is due.
  void sleep_through(std::chrono::nanoseconds by) {
    clock_->advance(by);
    run();
  }

  [[nodiscard]] ManualClock& manual_clock() noexcept { return *clock_; }
  [[nodiscard]] const std::shared_ptr<ManualClock>& shared_clock() const noexcept { return clock_; }
  [[nodiscard]] std::size_t pending_timers() const noexcept { return timers_.size(); }

  // --- Engine ---
  [[nodiscard]] const Clock& clock() const noexcept override { return *clock_; }
  void post(Task task) override { (void)submit(std::move(task)); }
  [[nodiscard]] TimerId schedule(TimePoint at, Task task) override { return timers_.add(at, std::move(task)); }
  void cancel(TimerId id) noexcept override { timers_.cancel(id); }
  [[nodiscard]] std::uint64_t random() override { return random_(); }
  [[nodiscard]] std::unique_ptr<Descriptor> watch(int /*fd*/) override {
    throw std::logic_error("a manual engine has no descriptors");
  }
  [[nodiscard]] bool dispatch(Task task) override {
    if (stopped_) return false;
    if (inside_task_) return submit(std::move(task));
    perform(task);
    return true;
  }
  [[nodiscard]] bool submit(Task task) override {
    if (stopped_) return false;
    queue_.push_back(std::move(task));
    return true;
  }
  [[nodiscard]] bool notify(Task user_code) override { return submit(std::move(user_code)); }
  // Lets time pass until the event is set. Where nothing is left to happen a real engine would block forever.
  bool wait(util::Event& event, std::optional<std::chrono::nanoseconds> limit) override {
    const TimePoint end = saturating_add(now(), limit.value_or(std::chrono::nanoseconds::max()));
    run();
    while (!event.is_set()) {
      if (!timers_.next() && !limit) throw std::logic_error("waiting for an event that nothing will set");
      const TimePoint next = std::min(end, timers_.next().value_or(end));
      clock_->advance(next - now());
      run();
      if (next >= end) break;
    }
    return event.is_set();
  }
  [[nodiscard]] bool must_not_block() const noexcept override { return inside_task_; }
  void stop() override {
    run();
    stopped_ = true;
  }

 private:
  void perform(const Task& task) {
    const bool outer = std::exchange(inside_task_, true);
    task();
    inside_task_ = outer;
  }

  std::shared_ptr<ManualClock> clock_;
  std::mt19937_64 random_;
  engine::TimerQueue timers_;
  std::deque<Task> queue_;
  bool inside_task_ = false;
  bool stopped_ = false;
};

}  // namespace dlock::test

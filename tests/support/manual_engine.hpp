// An engine that the test's own thread drives: time stands still, nothing runs by itself, everything is deterministic.
//
//   auto engine = std::make_shared<test::ManualEngine>(seed);
//   auto core = detail::ClientCore::create(engine, ...);
//   engine->advance(10s);          // runs every timer on the way, in order, at its own time
//
// It behaves like ThreadEngine: tasks are serialised, a dispatch from outside a task runs right away unless earlier
// dispatches are still queued, and user code given to notify() runs on "the engine thread" (must_not_block()), but not
// inside a task, so that its dispatches run right away.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
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
    while (run_one()) {
    }
  }

  // Runs the first thing that is due now. False: there was none.
  bool run_one() {
    if (!queue_.empty()) {
      Entry entry = std::move(queue_.front());
      queue_.pop_front();
      if (entry.kind == Kind::dispatched) --queued_dispatches_;
      if (entry.kind == Kind::user_code) {
        run_user_code(entry.task);
      } else {
        run_task(entry.task);
      }
      return true;
    }
    if (stopped_ || !timers_.next() || *timers_.next() > now()) return false;
    run_task([this] {  // all that are due, before anything that they post
      for (std::size_t left = timers_.size(); left > 0; --left) {
        const auto timer = timers_.pop_due(now());
        if (!timer) return;
        (*timer)();
      }
    });
    return true;
  }

  // Runs everything that becomes due until then, stopping the clock at each deadline.
  void advance(std::chrono::nanoseconds by) {
    run();
    const TimePoint end = saturating_add(now(), by);
    while (!stopped_ && timers_.next() && *timers_.next() <= end) {
      clock_->advance(*timers_.next() - now());
      run();
    }
    clock_->advance(end - now());
    run();
  }

  // Moves time without running anything on the way, as if the process had been stopped; then runs what is due.
  void sleep_through(std::chrono::nanoseconds by) {
    clock_->advance(by);
    run();
  }

  // While busy, the engine thread is taken to be inside a task: dispatches of "other threads" queue up.
  void set_busy(bool busy) noexcept { busy_ = busy; }

  [[nodiscard]] ManualClock& manual_clock() noexcept { return *clock_; }
  [[nodiscard]] const std::shared_ptr<ManualClock>& shared_clock() const noexcept { return clock_; }
  [[nodiscard]] std::size_t pending_timers() const noexcept { return timers_.size(); }
  [[nodiscard]] std::size_t queued() const noexcept { return queue_.size(); }
  [[nodiscard]] bool inside_task() const noexcept { return inside_task_; }
  [[nodiscard]] bool stopped() const noexcept { return stopped_; }

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
    if (!inside_task_ && (inside_user_code_ || (!busy_ && queued_dispatches_ == 0))) {
      run_task(task);
      return true;
    }
    ++queued_dispatches_;
    queue_.push_back({Kind::dispatched, std::move(task)});
    return true;
  }
  [[nodiscard]] bool submit(Task task) override {
    if (stopped_) return false;
    queue_.push_back({Kind::posted, std::move(task)});
    return true;
  }
  [[nodiscard]] bool notify(Task user_code) override {
    if (stopped_ && !inside_task_) return false;
    queue_.push_back({Kind::user_code, std::move(user_code)});
    return true;
  }
  // Lets time pass until the event is set. Where nothing is left to happen a real engine would block forever.
  bool wait(util::Event& event, std::optional<std::chrono::nanoseconds> limit) override {
    if (event.is_set()) return true;
    if (must_not_block()) throw std::logic_error("waiting on the engine thread");
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
  [[nodiscard]] bool must_not_block() const noexcept override { return inside_task_ || inside_user_code_; }
  void stop() override {
    stopped_ = true;
    if (!must_not_block()) run();
  }

 private:
  enum class Kind { posted, dispatched, user_code };
  struct Entry {
    Kind kind;
    Task task;
  };

  void run_task(const Task& task) {
    const bool outer = std::exchange(inside_task_, true);
    task();
    inside_task_ = outer;
  }
  void run_user_code(const Task& user_code) {
    const bool outer = std::exchange(inside_user_code_, true);
    user_code();
    inside_user_code_ = outer;
  }

  std::shared_ptr<ManualClock> clock_;
  std::mt19937_64 random_;
  engine::TimerQueue timers_;
  std::deque<Entry> queue_;
  std::size_t queued_dispatches_ = 0;
  bool inside_task_ = false;
  bool inside_user_code_ = false;
  bool busy_ = false;
  bool stopped_ = false;
};

}  // namespace dlock::test

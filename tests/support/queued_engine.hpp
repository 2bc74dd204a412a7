// Shared by engines that one thread drives by hand: nothing runs by itself, everything is deterministic.
//
// They behave like ThreadEngine: tasks are serialised, a dispatch from outside a task runs at once unless earlier
// dispatches are still queued, and user code given to notify() runs on "the engine thread" (must_not_block()), but not
// inside a task, so that its dispatches run at once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <random>
#include <stdexcept>
#include <utility>

#include <dlock/clock.hpp>

#include "engine/engine.hpp"
#include "engine/timer_queue.hpp"

namespace dlock::test {

class QueuedEngine : public engine::Engine {
 public:
  explicit QueuedEngine(std::uint64_t seed) : random_(seed) {}

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
        const Task user_code = user_code_.pop();
        run_user_code(user_code);
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

  // While busy, the engine thread counts as inside a task: dispatches of "other threads" are queued.
  void set_busy(bool busy) noexcept { busy_ = busy; }

  [[nodiscard]] std::size_t pending_timers() const noexcept { return timers_.size(); }
  [[nodiscard]] std::size_t queued() const noexcept { return queue_.size(); }
  [[nodiscard]] bool inside_task() const noexcept { return inside_task_; }
  [[nodiscard]] bool stopped() const noexcept { return stopped_; }
  // When the first timer is due, on the engine's clock; nullopt once it is stopped.
  [[nodiscard]] std::optional<TimePoint> next_timer() const noexcept {
    return stopped_ ? std::nullopt : timers_.next();
  }

  // --- Engine ---
  void post(Task task) override { (void)submit(std::move(task)); }
  [[nodiscard]] TimerId schedule(TimePoint at, Task task) override { return timers_.add(at, std::move(task)); }
  void cancel(TimerId id) noexcept override { timers_.cancel(id); }
  [[nodiscard]] std::uint64_t random() override { return random_(); }
  [[nodiscard]] std::unique_ptr<Descriptor> watch(int /*fd*/) override {
    throw std::logic_error("an engine that is driven by hand has no descriptors");
  }
  [[nodiscard]] bool dispatch(Task task, engine::IfBusy /*if_busy*/ = engine::IfBusy::leave_task) override {
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
  [[nodiscard]] engine::Notified notify(Task&& user_code, engine::UserCode kind) override {
    if (stopped_ && !inside_task_) return engine::Notified::stopped;
    if (!user_code_.push(kind, std::move(user_code))) return engine::Notified::refused;
    queue_.push_back({Kind::user_code, nullptr});
    return engine::Notified::accepted;
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
    Task task;  // of user code, user_code_ says what comes next
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

  std::mt19937_64 random_;
  engine::TimerQueue timers_;
  std::deque<Entry> queue_;
  engine::UserCodeQueue user_code_;
  std::size_t queued_dispatches_ = 0;
  bool inside_task_ = false;
  bool inside_user_code_ = false;
  bool busy_ = false;
  bool stopped_ = false;
};

}  // namespace dlock::test

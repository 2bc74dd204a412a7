// The engine as a backend sees it: time, timers, readiness of descriptors, and tasks. For backend authors.
//
// An executor runs one task at a time, and each task sees the effects of the one before it. Most tasks run on the
// client's engine thread. A task may also run on a calling thread that has the executor to itself, so nothing may
// depend on the thread. Tasks must not block and must not throw.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <system_error>
#include <utility>

#include <dlock/clock.hpp>
#include <dlock/spi/task.hpp>

namespace dlock {

// Watches a descriptor. Its owner closes the descriptor after the destruction of this object.
class Descriptor {
 public:
  enum class Interest { readable, writable };

  Descriptor() = default;
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  // Pending handlers never run.
  virtual ~Descriptor() = default;

  // Runs the handler once, as a task, when the descriptor is ready or in error. At most one wait per kind of interest
  // may be pending. In tasks only.
  virtual void async_wait(Interest interest, std::function<void(std::error_code)> handler) = 0;
};

// Runs tasks one after the other.
class Executor {
 public:
  using Task = dlock::Task;
  using TimerId = std::uint64_t;  // never 0

  Executor() = default;
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;
  virtual ~Executor() = default;

  // Lease time. Any thread.
  [[nodiscard]] TimePoint now() const noexcept { return clock().now(); }
  [[nodiscard]] virtual const Clock& clock() const noexcept = 0;

  // Runs the task soon, never inside the call, in the order of the calls. Any thread. After the client is closed, it
  // drops the task.
  virtual void post(Task task) = 0;

  // Runs the task when now() reaches `at`, never inside the call. In tasks only; see Timer for a safe handle.
  [[nodiscard]] virtual TimerId schedule(TimePoint at, Task task) = 0;
  // Cancels the task. Ignores 0 and the id of a task that has run. In tasks only.
  virtual void cancel(TimerId id) noexcept = 0;

  // 64 random bits: jitter, ids. Any thread.
  [[nodiscard]] virtual std::uint64_t random() = 0;

  // Starts watching a descriptor. Throws Error(unavailable) if that is impossible. In tasks only.
  [[nodiscard]] virtual std::unique_ptr<Descriptor> watch(int fd) = 0;
};

// A timer that its destructor cancels. In tasks only, destruction included.
class Timer {
 public:
  explicit Timer(Executor& executor) noexcept : executor_(&executor) {}
  Timer(const Timer&) = delete;
  Timer& operator=(const Timer&) = delete;
  ~Timer() { disarm(); }

  // Replaces the earlier time and task.
  void arm(TimePoint at, Executor::Task task) {
    disarm();
    task_ = std::move(task);
    id_ = executor_->schedule(at, [this] {
      id_ = 0;
      const auto run = std::move(task_);  // it may arm this timer anew, or destroy it
      run();
    });
  }
  void disarm() noexcept {
    if (id_ == 0) return;
    executor_->cancel(std::exchange(id_, 0));
    task_ = nullptr;
  }
  [[nodiscard]] bool armed() const noexcept { return id_ != 0; }

 private:
  Executor* executor_;
  Executor::TimerId id_ = 0;
  Executor::Task task_;
};

}  // namespace dlock

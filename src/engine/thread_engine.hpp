// The engine of a real client: one thread running an Asio io_context.
#pragma once

#include <asio/executor_work_guard.hpp>
#include <asio/io_context.hpp>
#include <asio/posix/stream_descriptor.hpp>
#include <atomic>
#include <memory>
#include <string>
#include <thread>

#include "engine/engine.hpp"
#include "engine/timer_queue.hpp"
#include "util/mutex.hpp"

namespace dlock::engine {

// A task runs while mutex_ is held, whatever thread it runs on. The io_context, timers and descriptors are touched by
// tasks only; asio::post() alone is used from anywhere. Lock order: gate_ is a leaf, taken with or without mutex_.
class ThreadEngine final : public Engine, public std::enable_shared_from_this<ThreadEngine> {
 public:
  // Starts the thread. Throws Error(unavailable) when thread or descriptors cannot be had.
  [[nodiscard]] static std::shared_ptr<ThreadEngine> start(std::shared_ptr<Clock> clock,
                                                           std::function<std::uint64_t()> random);
  ThreadEngine(std::shared_ptr<Clock> clock, std::function<std::uint64_t()> random);  // not started; use start()
  ~ThreadEngine() override;

  [[nodiscard]] const Clock& clock() const noexcept override { return *clock_; }
  void post(Task task) override { (void)submit(std::move(task)); }  // documented as dropped once stopped
  [[nodiscard]] TimerId schedule(TimePoint at, Task task) override DLOCK_REQUIRES(mutex_);
  void cancel(TimerId id) noexcept override DLOCK_REQUIRES(mutex_);
  [[nodiscard]] std::uint64_t random() override { return random_(); }
  [[nodiscard]] std::unique_ptr<Descriptor> watch(int fd) override;

  [[nodiscard]] bool dispatch(Task task) override;
  [[nodiscard]] bool submit(Task task) override;
  [[nodiscard]] bool notify(Task user_code) override;
  bool wait(util::Event& event, std::optional<std::chrono::nanoseconds> limit) override;
  [[nodiscard]] bool must_not_block() const noexcept override;
  void stop() override;

  // For backends of this tree that speak Asio themselves. Handlers must run through run_task().
  [[nodiscard]] asio::io_context& io_context() noexcept { return io_; }
  // Runs a task from an Asio handler on the engine thread.
  void run_task(Task task) DLOCK_EXCLUDES(mutex_);

 private:
  class AsioDescriptor;
  class MovedClock;
  struct Inside;

  void launch();
  void run_thread() noexcept;
  bool enqueue(Task handler, bool although_stopping = false) DLOCK_EXCLUDES(gate_);
  // A task that throws ends the program: it has left the mutex and what that guards in an unknown state.
  void run(Task task) noexcept DLOCK_REQUIRES(mutex_);
  [[nodiscard]] bool inside_task() const noexcept;
  void run_due_timers() DLOCK_REQUIRES(mutex_);
  void arm_timer() DLOCK_REQUIRES(mutex_);
  void tick() DLOCK_EXCLUDES(mutex_);
  void wait_for_timer_descriptor();

  std::shared_ptr<Clock> clock_;
  std::function<std::uint64_t()> random_;
  asio::io_context io_;
  asio::executor_work_guard<asio::io_context::executor_type> work_;
  asio::posix::stream_descriptor timer_descriptor_;
  std::shared_ptr<MovedClock> moved_clock_;

  util::Mutex mutex_;
  TimerQueue timers_ DLOCK_GUARDED_BY(mutex_);
  TimePoint armed_for_ DLOCK_GUARDED_BY(mutex_) = TimePoint::max();

  util::Mutex gate_;  // orders submissions against stop()
  std::atomic<bool> stopped_{false};
  std::atomic<std::size_t> queued_{0};  // tasks that wait for mutex_

  std::thread thread_;
  std::atomic<std::thread::id> thread_id_{};
};

}  // namespace dlock::engine

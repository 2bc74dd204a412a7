// The engine of a real client: an event loop with a thread of its own.
#pragma once

#include <asio/posix/stream_descriptor.hpp>
#include <atomic>
#include <deque>
#include <memory>
#include <string>
#include <thread>

#include "engine/engine.hpp"
#include "engine/event_loop.hpp"
#include "engine/timer_queue.hpp"
#include "util/mutex.hpp"

namespace dlock::engine {

// A task runs while mutex_ is held, whatever thread it runs on. One holding of it is a turn: what it was taken for,
// then whatever has come into the inbox meanwhile; who finds it taken leaves a task there and goes. Timers and
// descriptors are touched by tasks only. Lock order: mutex_, gate_, the loop's.
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
  using Engine::notify;
  [[nodiscard]] bool notify(Task user_code, UserCode kind) override;
  bool wait(util::Event& event, std::optional<std::chrono::nanoseconds> limit) override;
  [[nodiscard]] bool must_not_block() const noexcept override;
  void stop() override;

 private:
  class AsioDescriptor;
  class MovedClock;
  struct Inside;

  void launch();
  void run_thread() noexcept;
  void wait_for_timer_descriptor();

  // Turns. What throws in one ends the program, as in a task. `by_loop`: the turn may take what was left to the loop.
  [[nodiscard]] bool inside_task() const noexcept;
  // A task that throws ends the program: it has left the mutex and what that guards in an unknown state.
  void run(Task task) noexcept DLOCK_REQUIRES(mutex_);
  [[nodiscard]] bool begin_turn(Task task, bool by_loop) noexcept DLOCK_RELEASE(mutex_);
  void run_inbox(bool by_loop) DLOCK_REQUIRES(mutex_);
  void finish_turn(bool by_loop) noexcept DLOCK_RELEASE(mutex_);
  void work_off_inbox() noexcept DLOCK_EXCLUDES(mutex_);
  [[nodiscard]] bool inbox_needs_somebody() DLOCK_EXCLUDES(gate_);
  [[nodiscard]] bool put_into_inbox(Task task) DLOCK_EXCLUDES(gate_);
  void have_inbox_emptied() DLOCK_REQUIRES(gate_);
  void run_from_loop(Task task) noexcept DLOCK_EXCLUDES(mutex_);

  void lock_for_loop() DLOCK_ACQUIRE(mutex_);

  void run_due_timers() DLOCK_REQUIRES(mutex_);
  void arm_timer() DLOCK_REQUIRES(mutex_);
  void tick_soon() DLOCK_EXCLUDES(gate_);

  std::shared_ptr<Clock> clock_;
  std::function<std::uint64_t()> random_;
  EventLoop loop_;
  asio::posix::stream_descriptor timer_descriptor_;
  std::shared_ptr<MovedClock> moved_clock_;

  util::Mutex mutex_;
  TimerQueue timers_ DLOCK_GUARDED_BY(mutex_);
  TimePoint armed_for_ DLOCK_GUARDED_BY(mutex_) = TimePoint::max();
  std::deque<Task> batch_ DLOCK_GUARDED_BY(mutex_);  // taken out of the inbox, and being run
  std::atomic<int> loop_waits_{0};                   // the loop waits for mutex_: callers stand back

  util::Mutex gate_;
  std::deque<Task> inbox_ DLOCK_GUARDED_BY(gate_);
  bool emptying_posted_ DLOCK_GUARDED_BY(gate_) = false;
  bool stopped_ DLOCK_GUARDED_BY(gate_) = false;

  std::thread thread_;
};

}  // namespace dlock::engine

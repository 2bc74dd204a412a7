// The engine of a real client: runs tasks one at a time, beside an event loop with a thread of its own.
//
// A thread runs a task while it has the *turn* (TurnQueue), and then the tasks that wait for one:
//
//   call                              | idle                 | a turn is under way      | tasks wait for the loop
//   ----------------------------------+----------------------+--------------------------+--------------------------
//   dispatch(), leave_task; timers    | takes the turn       | leaves the task to it    | leaves the task, too
//   and descriptors, in the loop      |                      |                          |
//   dispatch(), wait_for_turn; a      | takes the turn       | waits for its own        | takes the turn, and runs
//   manual clock that was moved       |                      |                          | what waits first
//   dispatch() inside a task          |                      | leaves it to its own     |
//   submit(), post()                  | asks the loop        | leaves the task to it    | leaves the task, too
//
// The loop, which also runs the user's code, never waits for a thread that the kernel has suspended in its turn. After
// most_tasks_in_a_turn the loop goes on with the rest. Callers whose events were set in a turn are woken after it
// (util::DeferredWakes). One turn in eight runs timers that are due. Timers and descriptors are touched in turns only.
// Callers of dispatch() own the engine: what follows the end of their turn uses it.
#pragma once

#include <asio/posix/stream_descriptor.hpp>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <thread>

#include "engine/engine.hpp"
#include "engine/event_loop.hpp"
#include "engine/timer_queue.hpp"
#include "engine/turn_queue.hpp"
#include "util/process.hpp"

namespace dlock::engine {

class ThreadEngine final : public Engine, public std::enable_shared_from_this<ThreadEngine> {
 public:
  using Random = std::function<std::uint64_t()>;

  // Starts the thread. Throws Error(unavailable) when no thread or descriptor is left.
  [[nodiscard]] static std::shared_ptr<ThreadEngine> start(std::shared_ptr<Clock> clock, Random random);
  // Not started; use start().
  ThreadEngine(std::shared_ptr<Clock> clock, Random random);
  ~ThreadEngine() override = default;

  [[nodiscard]] const Clock& clock() const noexcept override { return *clock_; }
  void post(Task task) override { (void)submit(std::move(task)); }  // documented as dropped once stopped
  [[nodiscard]] TimerId schedule(TimePoint at, Task task) override DLOCK_REQUIRES(turn_);
  void cancel(TimerId id) noexcept override DLOCK_REQUIRES(turn_);
  [[nodiscard]] std::uint64_t random() override { return random_(); }
  [[nodiscard]] std::unique_ptr<Descriptor> watch(int fd) override;

  [[nodiscard]] bool dispatch(Task task, IfBusy if_busy = IfBusy::leave_task) override;
  [[nodiscard]] bool submit(Task task) override;
  [[nodiscard]] Notified notify(Task&& user_code, UserCode kind) override;
  bool wait(util::Event& event, std::optional<std::chrono::nanoseconds> limit) override;
  [[nodiscard]] bool must_not_block() const noexcept override;
  void stop() override;

 private:
  class AsioDescriptor;
  class MovedClock;
  struct Inside;

  void launch();
  [[nodiscard]] bool inside_task() const noexcept;
  void wait_for_timer_descriptor();

  [[nodiscard]] bool enqueue(Task task, bool begins) noexcept;
  [[nodiscard]] bool wait_for_turn(Task task);
  void ask_loop() noexcept;
  // How many tasks a caller's turn runs beside its own.
  [[nodiscard]] std::size_t most_tasks_after_own() const noexcept;
  // Runs the task and at most so many of those that wait, then gives the turn back.
  void run_turn(Task first, std::size_t most) noexcept DLOCK_RELEASE(turn_) DLOCK_NO_THREAD_SAFETY_ANALYSIS;
  // Runs at most so many tasks that were taken out of the queue. Answers how many more it may have run.
  std::size_t run_batch(std::size_t most) noexcept DLOCK_REQUIRES(turn_);
  // A task that throws ends the program: the state that the turn guards is unknown then.
  void run(Task task) noexcept DLOCK_REQUIRES(turn_);

  void tick() DLOCK_REQUIRES(turn_);
  void run_due_timers(std::size_t most) DLOCK_REQUIRES(turn_);
  void arm_timer() DLOCK_REQUIRES(turn_);
  [[nodiscard]] std::uint64_t clock_moved() noexcept;

  EventLoop loop_;
  const std::shared_ptr<Clock> clock_;
  const Random random_;
  asio::posix::stream_descriptor timer_descriptor_;
  const std::uint64_t fork_generation_ = util::fork_generation();
  std::shared_ptr<MovedClock> moved_clock_;

  TurnQueue turn_;
  std::deque<Task> batch_ DLOCK_GUARDED_BY(turn_);  // taken out of the queue, and being run
  TimerQueue timers_ DLOCK_GUARDED_BY(turn_);
  TimePoint armed_for_ DLOCK_GUARDED_BY(turn_) = TimePoint::max();
  std::size_t turns_ DLOCK_GUARDED_BY(turn_) = 0;
  std::uint64_t ran_ DLOCK_GUARDED_BY(turn_) = 0;  // tasks
  bool last_turn_ DLOCK_GUARDED_BY(turn_) = false;
  std::atomic<bool> stopping_{false};
  std::atomic<std::uint64_t> notified_{0};  // user code

  std::thread thread_;
};

}  // namespace dlock::engine

// The engine of a real client: a serialisation of tasks over an event loop with a thread of its own.
//
// A task runs in a *turn*: while turn_ is held, on whatever thread that is. Who takes turns, and for what:
//
//   who                         | finds a turn under way           | in its own turn runs
//   ----------------------------+----------------------------------+-----------------------------------------------
//   dispatch(), leave_task      | leaves the task in the inbox     | the task; what has come into the inbox
//   dispatch(), wait_for_turn   | waits, after the loop            | what is in the inbox; the task; what has come
//   dispatch() in a handler of  | waits, before all callers        | the same
//   the user, on the own thread |                                  |
//   dispatch() inside a task    | it is its own turn: leaves the   |
//   and submit()                | task in the inbox                |
//   the loop (timers, handlers, | waits, before all callers;       | the timers or the handler; what has come into
//   what was posted)            | signals losses meanwhile         | the inbox
//   a clock that was moved      | waits, after the loop            | what is in the inbox; the timers; what has come
//
// A thread that has given a turn back looks into the inbox once more (work_off_inbox()), so that nothing is left there
// by a thread that found a turn under way that was just ending. After most_tasks_in_a_turn the loop goes on with the
// rest, so that others get their turn. Waiters whose events were set in a turn are woken after it
// (util::DeferredWakes).
//
// Timers and descriptors are touched in turns only. Lock order: turn_, inbox_mutex_, the loop's.
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
#include "engine/turn_mutex.hpp"
#include "util/mutex.hpp"
#include "util/process.hpp"

namespace dlock::engine {

class ThreadEngine final : public Engine, public std::enable_shared_from_this<ThreadEngine> {
 public:
  using Random = std::function<std::uint64_t()>;

  // Starts the thread. Throws Error(unavailable) when no thread or descriptor is left.
  [[nodiscard]] static std::shared_ptr<ThreadEngine> start(std::shared_ptr<Clock> clock, Random random);
  // Not started; use start().
  ThreadEngine(std::shared_ptr<Clock> clock, Random random);
  ~ThreadEngine() override;

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
  // The owner of a turn: tasks that were left to the loop run in the loop's turns.
  enum class By { caller, loop };

  // A turn for which turn_ has been taken. At its end it runs what has come into the inbox, and gives turn_ back.
  class DLOCK_SCOPED_CAPABILITY Turn {
   public:
    Turn(ThreadEngine& engine, By by) noexcept DLOCK_REQUIRES(engine.turn_) : engine_(engine), by_(by) {}
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;
    ~Turn() DLOCK_RELEASE() DLOCK_NO_THREAD_SAFETY_ANALYSIS;

   private:
    ThreadEngine& engine_;
    const By by_;
  };

  void launch();
  [[nodiscard]] bool inside_task() const noexcept;
  void wait_for_timer_descriptor();

  // A task that throws ends the program: the state that the mutex guards is unknown then.
  void run(Task task) noexcept DLOCK_REQUIRES(turn_);
  void run_inbox(By by) DLOCK_REQUIRES(turn_);
  void run_batch() DLOCK_REQUIRES(turn_);
  void run_all_of_inbox() DLOCK_REQUIRES(turn_);
  // Behind what is in the inbox: at once, or by leaving it there. Answers whether it was accepted.
  [[nodiscard]] bool run_in_order(Task task, bool at_once) DLOCK_REQUIRES(turn_);
  void take_turn_for_loop(Task task) noexcept DLOCK_EXCLUDES(turn_);

  [[nodiscard]] bool put_into_inbox(Task task) DLOCK_EXCLUDES(inbox_mutex_);
  void work_off_inbox() noexcept DLOCK_EXCLUDES(turn_);
  void leave_inbox_to_loop() DLOCK_REQUIRES(inbox_mutex_);
  void refuse_tasks();

  void run_due_timers(std::size_t most) DLOCK_REQUIRES(turn_);
  void arm_timer(By by) DLOCK_REQUIRES(turn_);
  void tick_soon() DLOCK_EXCLUDES(inbox_mutex_);
  [[nodiscard]] std::uint64_t clock_moved() noexcept DLOCK_EXCLUDES(turn_);

  EventLoop loop_;
  const std::shared_ptr<Clock> clock_;
  const Random random_;
  asio::posix::stream_descriptor timer_descriptor_;
  const std::uint64_t fork_generation_ = util::fork_generation();
  std::shared_ptr<MovedClock> moved_clock_;

  TurnMutex turn_;
  TimerQueue timers_ DLOCK_GUARDED_BY(turn_);
  TimePoint armed_for_ DLOCK_GUARDED_BY(turn_) = TimePoint::max();
  std::deque<Task> batch_ DLOCK_GUARDED_BY(turn_);  // taken out of the inbox, and being run
  std::size_t turns_ DLOCK_GUARDED_BY(turn_) = 0;   // of callers
  std::uint64_t ran_ DLOCK_GUARDED_BY(turn_) = 0;   // tasks
  std::atomic<std::uint64_t> notified_{0};          // user code

  util::Mutex inbox_mutex_;
  std::deque<Task> inbox_ DLOCK_GUARDED_BY(inbox_mutex_);
  std::atomic<bool> inbox_filled_{false};  // as inbox_ says; changes under inbox_mutex_
  std::atomic<bool> left_to_loop_{false};  // the loop will empty the inbox; changes under inbox_mutex_
  std::atomic<bool> stopped_{false};       // changes under inbox_mutex_

  std::thread thread_;
};

}  // namespace dlock::engine

// An io_context that its own thread drives, or, in its place, a caller that waits for an answer: then the answer comes
// to the thread that wants it, without a switch between threads (the leader/followers pattern; D. Schmidt et al.,
// Pattern-Oriented Software Architecture, volume 2).
//
//   leader     | who runs the io_context       | ends when
//   -----------+-------------------------------+-------------------------------------------------------------------
//   own thread | the own thread                | LeadPolicy says that callers come alone; or the work has ended
//   caller     | one caller, inside wait()     | its event is set; or after LeadPolicy::longest_lead
//   nobody     | none; the own thread sleeps   | a caller comes alone (it leads); more callers, post(), notify() or
//              |                               | stop() (the own thread leads); no caller for longest_gap (the same)
//
// User code runs on the own thread alone, whichever thread leads, between handlers and in short batches.
#pragma once

#include <asio/executor_work_guard.hpp>
#include <asio/io_context.hpp>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <optional>
#include <thread>

#include "engine/engine.hpp"
#include "engine/lead_policy.hpp"
#include "engine/user_code.hpp"
#include "util/event.hpp"
#include "util/mutex.hpp"

namespace dlock::engine {

class EventLoop {
 public:
  [[nodiscard]] asio::io_context& io() noexcept { return io_; }

  // The body of the loop's own thread: returns when the work has ended and nothing is left to do.
  void run() DLOCK_EXCLUDES(mutex_);
  [[nodiscard]] bool on_own_thread() const noexcept { return own_thread_.load() == std::this_thread::get_id(); }
  // Whether the caller is on the own thread of any loop.
  [[nodiscard]] static bool on_an_own_thread() noexcept;

  // Has the leader run the handler. A handler that throws ends the program: there may be a caller's frames below it.
  // Any thread.
  void post(Task handler) noexcept DLOCK_EXCLUDES(mutex_);

  // Has the own thread run the code. `stopped`: after stop(), unless `although_stopping`. Any thread.
  [[nodiscard]] Notified notify(Task&& user_code, UserCode kind, bool although_stopping = false) DLOCK_EXCLUDES(mutex_);

  // Blocks until the event is set, at most `limit` of real time; answers whether it is. May lead meanwhile. Handlers
  // and user code may set the event; other code calls look_again() after it.
  bool wait(util::Event& event, std::optional<std::chrono::nanoseconds> limit) DLOCK_EXCLUDES(mutex_);

  // After an event was set: wakes the caller that leads, if it waits for that event. Any thread.
  void look_again() DLOCK_EXCLUDES(mutex_);

  [[nodiscard]] int callers_waiting() const noexcept { return waiting_; }

  // Blocks until the user code that waits now has run. Not on an own thread.
  void drain_user_code() DLOCK_EXCLUDES(mutex_);

  // Refuses further user code.
  void stop() DLOCK_EXCLUDES(mutex_);
  // Lets the loop end as soon as nothing is outstanding. In a handler.
  void end_work() noexcept { work_.reset(); }

 private:
  using Clock = LeadPolicy::Clock;
  enum class Leader { nobody, own_thread, caller };

  class Waiting;

  // The own thread.
  [[nodiscard]] bool must_lead() const DLOCK_REQUIRES(mutex_);
  [[nodiscard]] bool may_leave_lead() const DLOCK_REQUIRES(mutex_);
  bool run_ready_handlers();
  void run_user_code() DLOCK_REQUIRES(mutex_);
  Notified wait_behind(UserCode kind) DLOCK_EXCLUDES(mutex_);
  void call_own_thread() DLOCK_REQUIRES(mutex_);

  // Callers.
  void lead_until(const util::Event& event, Clock::time_point end);
  [[nodiscard]] bool come(const util::Event& event) DLOCK_EXCLUDES(mutex_);
  void leave_lead() DLOCK_REQUIRES(mutex_);
  // If a caller leads, and its event is set.
  void wake_caller() DLOCK_REQUIRES(mutex_);

  std::atomic<std::thread::id> own_thread_{};
  asio::io_context io_{1};
  asio::executor_work_guard<asio::io_context::executor_type> work_ = asio::make_work_guard(io_);

  std::atomic<int> posted_{0};  // handlers that have not started
  AnswerPolling polling_;       // of a caller that leads, which alone may use it

  std::atomic<bool> loss_signalled_{false};  // since user code ran last
  std::atomic<std::thread::id> caller_{};    // the one that leads
  std::atomic<int> waiting_{0};              // as policy_ says

  util::Mutex mutex_;  // a leaf
  std::condition_variable_any woken_;
  UserCodeQueue user_code_ DLOCK_GUARDED_BY(mutex_);
  LeadPolicy policy_ DLOCK_GUARDED_BY(mutex_);
  Leader leader_ DLOCK_GUARDED_BY(mutex_) = Leader::nobody;
  const util::Event* led_for_ DLOCK_GUARDED_BY(mutex_) = nullptr;  // what the caller that leads waits for
  bool own_thread_called_ DLOCK_GUARDED_BY(mutex_) = true;         // it has to lead
  bool stopping_ DLOCK_GUARDED_BY(mutex_) = false;
  Clock::time_point last_led_ DLOCK_GUARDED_BY(mutex_);  // when a caller or the own thread left the lead last
};

}  // namespace dlock::engine

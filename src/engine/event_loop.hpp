// An io_context that its own thread drives, or, in its place, a caller that waits for an answer: then the answer comes
// to the thread that wants it, without a switch between threads (the leader/followers pattern; D. Schmidt et al.,
// Pattern-Oriented Software Architecture, volume 2).
//
// At most one thread leads, that is, runs the io_context. A caller leads only while no other caller waits, and for a
// few milliseconds at most; user code runs on the loop's own thread alone.
#pragma once

#include <asio/executor_work_guard.hpp>
#include <asio/io_context.hpp>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <optional>
#include <thread>

#include "engine/engine.hpp"
#include "util/event.hpp"
#include "util/mutex.hpp"

namespace dlock::engine {

class EventLoop {
 public:
  using Task = std::function<void()>;

  [[nodiscard]] asio::io_context& io() noexcept { return io_; }

  // The body of the loop's own thread: returns when the work has ended and nothing is left to do.
  void run() DLOCK_EXCLUDES(mutex_);
  [[nodiscard]] bool on_own_thread() const noexcept { return own_thread_.load() == std::this_thread::get_id(); }

  // Has a leader run the handler. A handler that throws ends the program: there may be a caller's frames below it. Any
  // thread.
  void post(Task handler) DLOCK_EXCLUDES(mutex_);

  // Has the loop's own thread run the code, what is of one kind in the order of the calls. False: after stop(), unless
  // `although_stopping`. Any thread.
  [[nodiscard]] bool notify(Task user_code, bool although_stopping, UserCode kind = UserCode::other)
      DLOCK_EXCLUDES(mutex_);

  // Blocks until the event is set, at most `limit` of real time; answers whether it is. May run the loop meanwhile.
  // Events are set by handlers, or before a call of look_again().
  bool wait(util::Event& event, std::optional<std::chrono::nanoseconds> limit) DLOCK_EXCLUDES(mutex_);

  // Something was done outside the loop which may be what its leader waits for. Not by the leader.
  void look_again() DLOCK_EXCLUDES(mutex_);

  [[nodiscard]] int callers_waiting() const noexcept { return waiting_; }

  // Refuses further user code.
  void stop() DLOCK_EXCLUDES(mutex_);
  // Lets the loop end as soon as nothing is outstanding. In a handler.
  void end_work() noexcept { work_.reset(); }

 private:
  using Clock = std::chrono::steady_clock;
  enum class Leader { nobody, own_thread, caller };

  class Waiting;
  class Leading;

  void await_lead() DLOCK_REQUIRES(mutex_);
  void lead(bool hurry) DLOCK_EXCLUDES(mutex_);
  [[nodiscard]] std::size_t run_what_is_ready();
  [[nodiscard]] Task next_user_code() DLOCK_REQUIRES(mutex_);
  void run_user_code() DLOCK_REQUIRES(mutex_);
  void run_all_user_code() DLOCK_REQUIRES(mutex_);
  [[nodiscard]] bool user_code_waits() const DLOCK_REQUIRES(mutex_) {
    return !loss_signals_.empty() || !user_code_.empty();
  }
  [[nodiscard]] bool may_leave() const DLOCK_REQUIRES(mutex_);
  [[nodiscard]] bool take_lead(const util::Event& event) DLOCK_EXCLUDES(mutex_);
  void lead_until(const util::Event& event, Clock::time_point end);
  void leave_lead(const util::Event& event) DLOCK_EXCLUDES(mutex_);
  void waited(bool led, Clock::time_point since) DLOCK_EXCLUDES(mutex_);
  void call_own_thread() DLOCK_REQUIRES(mutex_);

  std::atomic<std::thread::id> own_thread_{};
  asio::io_context io_{1};
  asio::executor_work_guard<asio::io_context::executor_type> work_ = asio::make_work_guard(io_);

  std::atomic<int> posted_{0};  // handlers that have not begun

  std::chrono::nanoseconds polling_{0};  // how long a caller that leads polls before it sleeps; the leader's

  std::atomic<bool> caller_leads_{false};
  std::atomic<int> waiting_{0};  // callers inside wait(); changes under mutex_

  util::Mutex mutex_;  // a leaf
  std::condition_variable_any parked_;
  std::deque<Task> loss_signals_ DLOCK_GUARDED_BY(mutex_);
  std::deque<Task> user_code_ DLOCK_GUARDED_BY(mutex_);  // all other
  Leader leader_ DLOCK_GUARDED_BY(mutex_) = Leader::nobody;
  const util::Event* led_for_ DLOCK_GUARDED_BY(mutex_) = nullptr;  // what the caller that leads waits for
  const util::Event* sleeper_ DLOCK_GUARDED_BY(mutex_) = nullptr;  // what a caller waits for that came alone
  int alone_ DLOCK_GUARDED_BY(mutex_) = 0;                         // callers that came and went one by one
  bool wanted_ DLOCK_GUARDED_BY(mutex_) = true;                    // the own thread has to lead
  bool make_way_ DLOCK_GUARDED_BY(mutex_) = false;                 // it should leave the lead to callers
  bool stopping_ DLOCK_GUARDED_BY(mutex_) = false;
  bool ended_ DLOCK_GUARDED_BY(mutex_) = false;
  Clock::time_point last_led_ DLOCK_GUARDED_BY(mutex_);   // by a caller
  Clock::time_point last_left_ DLOCK_GUARDED_BY(mutex_);  // when a caller came out of wait()
};

}  // namespace dlock::engine

#include "engine/thread_engine.hpp"

#include <pthread.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <string>
#include <utility>

#include <dlock/error.hpp>

#include "util/signals_blocked.hpp"

namespace dlock::engine {

namespace {

// Then others get their turn.
constexpr std::size_t most_tasks_in_a_turn = 256;
constexpr int crowd = 16;

std::string describe(int error) {
  return std::system_category().message(error);
}

}  // namespace

// The engines whose tasks this thread is inside of, the innermost first: tasks of different engines may nest.
struct ThreadEngine::Inside {
  explicit Inside(const ThreadEngine& of) noexcept : engine(&of), outer(std::exchange(innermost, this)) {}
  Inside(const Inside&) = delete;
  Inside& operator=(const Inside&) = delete;
  ~Inside() { innermost = outer; }

  const ThreadEngine* const engine;
  const Inside* const outer;
  static thread_local const Inside* innermost;
};

thread_local const ThreadEngine::Inside* ThreadEngine::Inside::innermost = nullptr;

class ThreadEngine::AsioDescriptor final : public Descriptor {
 public:
  AsioDescriptor(ThreadEngine& engine, int fd) : engine_(engine), descriptor_(engine.loop_.io()) {
    std::error_code ec;
    descriptor_.assign(fd, ec);
    if (ec) throw Error(errc::unavailable, "cannot watch a descriptor: " + ec.message());
  }
  ~AsioDescriptor() override { (void)descriptor_.release(); }  // the descriptor belongs to somebody else

  void async_wait(Interest interest, std::function<void(std::error_code)> handler) override {
    const auto what = interest == Interest::readable ? asio::posix::stream_descriptor::wait_read
                                                     : asio::posix::stream_descriptor::wait_write;
    descriptor_.async_wait(what, [&engine = engine_, alive = std::weak_ptr<bool>(alive_),
                                  handler = std::move(handler)](std::error_code ec) mutable noexcept {
      engine.run_from_loop([alive = std::move(alive), handler = std::move(handler), ec] {
        if (!alive.expired()) handler(ec);
      });
    });
  }

 private:
  ThreadEngine& engine_;
  asio::posix::stream_descriptor descriptor_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

class ThreadEngine::MovedClock final : public ClockListener {
 public:
  explicit MovedClock(std::weak_ptr<ThreadEngine> engine) : engine_(std::move(engine)) {}
  void clock_moved() noexcept override {
    if (const auto engine = engine_.lock()) engine->tick_soon();
  }

 private:
  std::weak_ptr<ThreadEngine> engine_;
};

std::shared_ptr<ThreadEngine> ThreadEngine::start(std::shared_ptr<Clock> clock, std::function<std::uint64_t()> random) {
  try {
    auto engine = std::make_shared<ThreadEngine>(std::move(clock), std::move(random));
    engine->launch();
    return engine;
  } catch (const Error&) {
    throw;
  } catch (const std::system_error&) {  // Asio's
    throw Error(errc::unavailable, "cannot start the engine: no descriptors or no memory left for its event queue");
  }
}

ThreadEngine::ThreadEngine(std::shared_ptr<Clock> clock, std::function<std::uint64_t()> random)
    : clock_(std::move(clock)), random_(std::move(random)), timer_descriptor_(loop_.io()) {}

ThreadEngine::~ThreadEngine() = default;

void ThreadEngine::launch() {
  const int fd = timerfd_create(CLOCK_BOOTTIME, TFD_NONBLOCK | TFD_CLOEXEC);
  if (fd < 0) throw Error(errc::unavailable, "cannot create a timer descriptor: " + describe(errno));
  std::error_code ec;
  timer_descriptor_.assign(fd, ec);
  if (ec) {
    (void)::close(fd);  // nothing was written to it
    throw Error(errc::unavailable, "cannot watch a timer descriptor: " + ec.message());
  }
  wait_for_timer_descriptor();
  moved_clock_ = std::make_shared<MovedClock>(weak_from_this());
  clock_->add_listener(moved_clock_);

  const util::SignalsBlocked blocked;
  try {
    // The thread shares the ownership, so that stop() on the engine thread itself leaves nothing dangling.
    thread_ = std::thread([self = shared_from_this()] { self->run_thread(); });
  } catch (const std::system_error& e) {
    throw Error(errc::unavailable, std::string("cannot start the engine thread: ") + e.what());
  }
  pthread_setname_np(thread_.native_handle(), "dlock-engine");  // for people only: a failure does not matter
}

void ThreadEngine::run_thread() noexcept {
  loop_.run();
}

// --- Turns -----------------------------------------------------------------------------------------------------------

bool ThreadEngine::inside_task() const noexcept {
  for (const Inside* inside = Inside::innermost; inside != nullptr; inside = inside->outer) {
    if (inside->engine == this) return true;
  }
  return false;
}

void ThreadEngine::run(Task task) noexcept {
  const Inside inside(*this);
  task();
  task = nullptr;  // what it holds may use the executor when it goes, a Timer for instance
}

void ThreadEngine::run_inbox(bool by_loop) {
  for (std::size_t left = most_tasks_in_a_turn;; --left) {
    if (batch_.empty() || left == 0) {
      const util::MutexLock lock(gate_);
      if (left == 0) return have_inbox_emptied();
      if (emptying_posted_ && !by_loop) return;  // it is the loop's now
      batch_.swap(inbox_);
      if (batch_.empty()) return;
    }
    Task task = std::move(batch_.front());
    batch_.pop_front();
    run(std::move(task));
  }
}

void ThreadEngine::finish_turn(bool by_loop) noexcept {
  run_inbox(by_loop);
  arm_timer();
  mutex_.unlock();
}

// Whoever leaves a task in the inbox because mutex_ is taken relies on the look after it was given back.
void ThreadEngine::work_off_inbox() noexcept {
  while (inbox_needs_somebody() && loop_waits_ == 0 && mutex_.try_lock()) finish_turn(false);
}

bool ThreadEngine::inbox_needs_somebody() {
  const util::MutexLock lock(gate_);
  return !inbox_.empty() && !emptying_posted_;
}

void ThreadEngine::have_inbox_emptied() {
  if (emptying_posted_) return;
  loop_.post([this] {
    {
      const util::MutexLock lock(gate_);  // the caller has it until the flag is set
      emptying_posted_ = false;
    }
    run_from_loop(nullptr);
  });
  emptying_posted_ = true;
}

void ThreadEngine::run_from_loop(Task task) noexcept {
  lock_for_loop();
  if (task) run(std::move(task));
  finish_turn(true);
  work_off_inbox();
}

// Callers that would take the next turn stand back, or they could starve the loop and its timers.
void ThreadEngine::lock_for_loop() {
  ++loop_waits_;
  mutex_.lock();
  --loop_waits_;
}

bool ThreadEngine::put_into_inbox(Task task) {
  const util::MutexLock lock(gate_);
  if (stopped_) return false;
  inbox_.push_back(std::move(task));
  return true;
}

bool ThreadEngine::dispatch(Task task) {
  if (inside_task()) return put_into_inbox(std::move(task));  // this very turn goes on with it
  const bool by_loop = loop_.on_own_thread();
  if (by_loop && Inside::innermost == nullptr) {  // in a handler of the user: another thread's turn is over in no time
    lock_for_loop();
    return begin_turn(std::move(task), by_loop);
  }
  if (loop_waits_ == 0 && mutex_.try_lock()) return begin_turn(std::move(task), by_loop);
  if (!put_into_inbox(std::move(task))) return false;
  work_off_inbox();
  loop_.look_again();
  return true;
}

// The task runs in this turn, after those that came before it.
bool ThreadEngine::begin_turn(Task task, bool by_loop) noexcept {
  bool accepted = false;
  Task first;
  {
    const util::MutexLock lock(gate_);
    accepted = !stopped_;
    if (accepted && inbox_.empty() && batch_.empty()) {
      first = std::move(task);
    } else if (accepted) {
      inbox_.push_back(std::move(task));
    }
  }
  if (first) run(std::move(first));
  finish_turn(by_loop);
  work_off_inbox();
  loop_.look_again();
  return accepted;
}

bool ThreadEngine::submit(Task task) {
  const bool inside = inside_task();
  const util::MutexLock lock(gate_);
  if (stopped_) return false;
  inbox_.push_back(std::move(task));
  // Where many callers wait, what their turns leave behind, such as the sending of what they wrote, is done for all of
  // them at once.
  try {
    if (!inside || (loop_.callers_waiting() >= crowd && !loop_.on_own_thread())) have_inbox_emptied();
  } catch (...) {
    inbox_.pop_back();  // refused as a whole
    throw;
  }
  return true;
}

bool ThreadEngine::notify(Task user_code, UserCode kind) {
  // From a task that still runs while the engine stops it is accepted, because the caller could only run it under the
  // mutex. The thread cannot end before that task does.
  return loop_.notify(std::move(user_code), inside_task(), kind);
}

bool ThreadEngine::wait(util::Event& event, std::optional<std::chrono::nanoseconds> limit) {
  return loop_.wait(event, limit);
}

bool ThreadEngine::must_not_block() const noexcept {
  return inside_task() || loop_.on_own_thread();
}

// --- Timers and descriptors ------------------------------------------------------------------------------------------

Executor::TimerId ThreadEngine::schedule(TimePoint at, Task task) {
  return timers_.add(at, std::move(task));
}

void ThreadEngine::cancel(TimerId id) noexcept {
  if (id != 0) timers_.cancel(id);
}

std::unique_ptr<Descriptor> ThreadEngine::watch(int fd) {
  return std::make_unique<AsioDescriptor>(*this, fd);
}

void ThreadEngine::run_due_timers() {
  // At most as many as there are now, so that timers which arm each other cannot keep everything else waiting.
  for (std::size_t left = timers_.size(); left > 0; --left) {
    const auto task = timers_.pop_due(now());
    if (!task) return;
    (*task)();
  }
}

void ThreadEngine::arm_timer() {
  const auto next = timers_.next();
  if (!next || *next >= armed_for_) return;  // an early wake-up finds nothing due and arms again
  if (!clock_->runs_by_itself()) {
    if (*next <= now()) {
      armed_for_ = *next;
      tick_soon();
    }
    return;
  }
  const auto since_epoch = std::max(next->time_since_epoch(), std::chrono::nanoseconds(1));  // 0 would disarm
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(since_epoch);
  itimerspec at{};
  at.it_value.tv_sec = seconds.count();
  at.it_value.tv_nsec = (since_epoch - seconds).count();
  armed_for_ = *next;
  // Fails only where stop() has closed the descriptor, and timers are over.
  (void)timerfd_settime(timer_descriptor_.native_handle(), TFD_TIMER_ABSTIME, &at, nullptr);
}

// As a task like others, but never in the turn that goes on: timers that arm each other must not make it endless.
void ThreadEngine::tick_soon() {
  const util::MutexLock lock(gate_);
  if (stopped_) return;
  inbox_.emplace_back([this]() DLOCK_REQUIRES(mutex_) {
    armed_for_ = TimePoint::max();
    run_due_timers();
  });
  have_inbox_emptied();
}

void ThreadEngine::wait_for_timer_descriptor() {
  timer_descriptor_.async_wait(asio::posix::stream_descriptor::wait_read, [this](std::error_code ec) noexcept {
    if (ec) return;  // closed by stop()
    std::uint64_t expirations = 0;
    (void)::read(timer_descriptor_.native_handle(), &expirations, sizeof expirations);  // only resets readiness
    run_from_loop([this]() DLOCK_REQUIRES(mutex_) {
      armed_for_ = TimePoint::max();
      run_due_timers();
    });
    wait_for_timer_descriptor();
  });
}

void ThreadEngine::stop() {
  {
    // In one step, or the thread could end between the two and leave behind what was accepted in the meantime.
    const util::MutexLock lock(gate_);
    stopped_ = true;
    loop_.stop();
    loop_.post([this] {
      run_from_loop([this] {
        std::error_code ignored;  // closing reports nothing that could be acted on
        timer_descriptor_.close(ignored);
        loop_.end_work();
      });
    });
  }
  if (must_not_block()) {
    thread_.detach();
  } else if (thread_.joinable()) {
    thread_.join();
  }
}

}  // namespace dlock::engine

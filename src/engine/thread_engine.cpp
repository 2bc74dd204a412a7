// Long, because turns, inbox and timers are one protocol: each step relies on what the others do.
#include "engine/thread_engine.hpp"

#include <pthread.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <string>
#include <utility>

#include <dlock/duration.hpp>
#include <dlock/error.hpp>
#include <dlock/spi/lifetime.hpp>

#include "engine/hand_over.hpp"
#include "util/signals_blocked.hpp"

namespace dlock::engine {

namespace {

// Then others get their turn.
constexpr std::size_t most_tasks_in_a_turn = 256;
constexpr std::size_t most_timers_in_a_turn = 64;
// Callers run timers that are due, too, so that timers do not depend on when the loop's thread gets a processor. A
// caller runs at most this many at the end of its turn, in one of this many turns.
constexpr std::size_t most_timers_of_a_caller = 32;
constexpr std::size_t turns_between_timers = 8;
// The loop's thread leaves timers to callers for so long where there are such.
constexpr std::chrono::nanoseconds callers_go_first = std::chrono::microseconds(200);
// Where so many callers wait, what their turns leave behind, such as the sending of what they wrote, is done for all of
// them at once.
constexpr int several = 16;
// The loop's thread waits so long for a turn before it checks for losses to report: the scheduler may have suspended
// the thread whose turn it is.
constexpr std::chrono::nanoseconds longest_without_losses = std::chrono::microseconds(200);

// A thread that yields its processor between turns is seldom preempted inside of one, where all others would wait for
// it.
void yield_between_turns() noexcept {
  constexpr unsigned turns_between_looks = 64;
  constexpr auto a_while = std::chrono::milliseconds(1);
  using Clock = std::chrono::steady_clock;
  thread_local unsigned turns = 0;
  thread_local Clock::time_point last = Clock::now();
  if (++turns % turns_between_looks != 0) return;
  if (const auto now = Clock::now(); now - last >= a_while) {
    std::this_thread::yield();
    last = now;
  }
}

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

  [[nodiscard]] static bool task_of(const ThreadEngine& engine) noexcept {
    for (const Inside* inside = innermost; inside != nullptr; inside = inside->outer) {
      if (inside->engine == &engine) return true;
    }
    return false;
  }

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
  ~AsioDescriptor() override { (void)descriptor_.release(); }  // the descriptor is not ours

  void async_wait(Interest interest, std::function<void(std::error_code)> handler) override {
    const auto what = interest == Interest::readable ? asio::posix::stream_descriptor::wait_read
                                                     : asio::posix::stream_descriptor::wait_write;
    descriptor_.async_wait(what, [&engine = engine_, life = lifetime_.watch(),
                                  handler = std::move(handler)](std::error_code ec) mutable noexcept {
      engine.take_turn_for_loop([&life, &handler, ec] {
        const auto run = std::move(handler);  // what it holds may use the executor when it goes
        if (!life.over()) run(ec);
      });
    });
  }

 private:
  ThreadEngine& engine_;
  asio::posix::stream_descriptor descriptor_;
  Lifetime lifetime_;
};

class ThreadEngine::MovedClock final : public ClockListener {
 public:
  explicit MovedClock(std::weak_ptr<ThreadEngine> engine) : engine_(std::move(engine)) {}
  std::uint64_t clock_moved() noexcept override {
    const auto engine = engine_.lock();
    return engine ? engine->clock_moved() : 0;
  }

 private:
  std::weak_ptr<ThreadEngine> engine_;
};

std::shared_ptr<ThreadEngine> ThreadEngine::start(std::shared_ptr<Clock> clock, Random random) {
  try {
    auto engine = std::make_shared<ThreadEngine>(std::move(clock), std::move(random));
    engine->launch();
    const util::SignalsBlocked blocked;
    // The thread shares the ownership, so that stop() on the engine thread itself leaves nothing dangling.
    engine->thread_ = std::thread([engine]() noexcept { engine->loop_.run(); });
    pthread_setname_np(engine->thread_.native_handle(), "dlock-engine");  // for people only: a failure does not matter
    return engine;
  } catch (const Error&) {
    throw;
  } catch (const std::system_error& e) {  // Asio's, or the thread's
    throw Error(errc::unavailable, std::string("cannot start the engine and its thread: ") + e.what());
  }
}

ThreadEngine::ThreadEngine(std::shared_ptr<Clock> clock, Random random)
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
}

// --- Turns -----------------------------------------------------------------------------------------------------------

bool ThreadEngine::inside_task() const noexcept {
  return Inside::task_of(*this);
}

void ThreadEngine::run(Task task) noexcept {
  const Inside inside(*this);
  ++ran_;
  task();
  task = nullptr;  // what it holds may use the executor when it goes, a Timer for instance
}

bool ThreadEngine::dispatch(Task task, IfBusy if_busy) {
  if (inside_task()) return put_into_inbox(std::move(task));  // this very turn goes on with it
  const bool waits_for_nothing = Inside::innermost != nullptr;
  const By by = !waits_for_nothing && loop_.on_own_thread() ? By::loop : By::caller;
  bool at_once = true;
  if (by == By::loop) {  // in a handler of the user: another thread's turn ends at once
    turn_.lock_first();
  } else if (if_busy == IfBusy::wait_for_turn && !waits_for_nothing) {
    turn_.lock();
  } else if (turn_.try_lock()) {
    at_once = false;
  } else {
    hand_over();
    if (!put_into_inbox(std::move(task))) return false;
    hand_over();
    work_off_inbox();
    loop_.look_again();
    return true;
  }
  bool accepted = false;
  {
    util::DeferredWakes wakes;  // wakes after the turn
    const Turn turn(*this, by);
    accepted = run_in_order(std::move(task), at_once);
    const bool helps = by == By::caller && !waits_for_nothing && ++turns_ % turns_between_timers == 0;
    if (helps) run_due_timers(most_timers_of_a_caller);
  }
  work_off_inbox();
  if (at_once && by == By::caller) yield_between_turns();
  loop_.look_again();
  return accepted;
}

bool ThreadEngine::run_in_order(Task task, bool at_once) {
  if (stopped_) return false;  // if stop() comes now: it waits for a turn of its own, after this one
  hand_over();
  if (at_once) {
    run_all_of_inbox();
  } else if (inbox_filled_ || !batch_.empty()) {
    return put_into_inbox(std::move(task));
  }
  run(std::move(task));
  return true;
}

ThreadEngine::Turn::~Turn() {
  engine_.run_inbox(by_);
  engine_.arm_timer(by_);
  hand_over();
  engine_.turn_.unlock();
  hand_over();
}

void ThreadEngine::run_inbox(By by) {
  for (std::size_t left = most_tasks_in_a_turn;; --left) {
    if (batch_.empty() || left == 0) {
      if (batch_.empty() && !inbox_filled_) return;
      hand_over();
      const util::MutexLock lock(inbox_mutex_);
      if (left == 0) return leave_inbox_to_loop();
      if (left_to_loop_ && by == By::caller) return;
      batch_.swap(inbox_);
      inbox_filled_ = false;
      if (batch_.empty()) return;
    }
    Task task = std::move(batch_.front());
    batch_.pop_front();
    run(std::move(task));
  }
}

void ThreadEngine::run_batch() {
  for (std::size_t left = batch_.size(); left > 0; --left) {
    Task task = std::move(batch_.front());
    batch_.pop_front();
    run(std::move(task));
  }
}

// The tasks that are there now.
void ThreadEngine::run_all_of_inbox() {
  run_batch();
  if (!inbox_filled_) return;
  {
    const util::MutexLock lock(inbox_mutex_);
    batch_.swap(inbox_);
    inbox_filled_ = false;
  }
  run_batch();
}

void ThreadEngine::take_turn_for_loop(Task task) noexcept {
  loop_.handler_begins();
  {
    while (!turn_.lock_first_for(longest_without_losses)) loop_.run_loss_signals();
    util::DeferredWakes wakes;
    const Turn turn(*this, By::loop);
    if (task) run(std::move(task));
  }
  work_off_inbox();
}

// --- The inbox -------------------------------------------------------------------------------------------------------

bool ThreadEngine::put_into_inbox(Task task) {
  const util::MutexLock lock(inbox_mutex_);
  if (stopped_) return false;
  inbox_.push_back(std::move(task));
  inbox_filled_ = true;
  return true;
}

// A thread that leaves a task in the inbox because a turn is under way relies on the look after that turn.
void ThreadEngine::work_off_inbox() noexcept {
  hand_over();
  while (inbox_filled_ && !left_to_loop_ && turn_.try_lock()) {
    hand_over();
    util::DeferredWakes wakes;
    const Turn turn(*this, By::caller);
  }
}

void ThreadEngine::leave_inbox_to_loop() {
  if (left_to_loop_) return;
  loop_.post([this] {
    {
      const util::MutexLock lock(inbox_mutex_);  // the caller has it until the flag is set
      left_to_loop_ = false;
    }
    hand_over();
    take_turn_for_loop(nullptr);
  });
  hand_over();
  left_to_loop_ = true;
}

bool ThreadEngine::submit(Task task) {
  const bool inside = inside_task();
  const util::MutexLock lock(inbox_mutex_);
  if (stopped_) return false;
  inbox_.push_back(std::move(task));
  try {
    if (!inside || (loop_.callers_waiting() >= several && !loop_.on_own_thread())) leave_inbox_to_loop();
  } catch (...) {
    inbox_.pop_back();  // refused as a whole
    throw;
  }
  inbox_filled_ = true;
  return true;
}

// --- User code, and waiting for it -----------------------------------------------------------------------------------

Notified ThreadEngine::notify(Task&& user_code, UserCode kind) {
  // From a task that still runs while the engine stops it is accepted, because the caller could only run it under the
  // mutex. The thread cannot end before that task does.
  if (!clock_->runs_by_itself()) ++notified_;
  return loop_.notify(std::move(user_code), kind, inside_task());
}

bool ThreadEngine::wait(util::Event& event, std::optional<std::chrono::nanoseconds> limit) {
  return loop_.wait(event, limit);
}

bool ThreadEngine::must_not_block() const noexcept {
  return loop_.on_own_thread() || inside_task();
}

// --- Timers and descriptors ------------------------------------------------------------------------------------------

Executor::TimerId ThreadEngine::schedule(TimePoint at, Task task) {
  return timers_.add(at, std::move(task));
}

void ThreadEngine::cancel(TimerId id) noexcept {
  timers_.cancel(id);
}

std::unique_ptr<Descriptor> ThreadEngine::watch(int fd) {
  return std::make_unique<AsioDescriptor>(*this, fd);
}

// At most as many as there are now, so that timers which arm each other cannot keep everything else waiting.
void ThreadEngine::run_due_timers(std::size_t most) {
  for (std::size_t left = std::min(timers_.size(), most); left > 0; --left) {
    auto task = timers_.pop_due(now());
    if (!task) return;
    run(*std::move(task));
  }
}

void ThreadEngine::arm_timer(By by) {
  auto next = timers_.next();
  if (next && by == By::caller && clock_->runs_by_itself()) next = saturating_add(*next, callers_go_first);
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
  const util::MutexLock lock(inbox_mutex_);
  if (stopped_) return;
  inbox_.emplace_back([this]() DLOCK_REQUIRES(turn_) {
    armed_for_ = TimePoint::max();
    run_due_timers(most_timers_in_a_turn);
  });
  leave_inbox_to_loop();
  inbox_filled_ = true;
}

// Where a thread may wait for another it could be in the other's advance(). And a child made by fork() has no thread of
// the loop.
std::uint64_t ThreadEngine::clock_moved() noexcept {
  if (fork_generation_ != util::fork_generation()) return 0;
  if (EventLoop::on_an_own_thread() || Inside::innermost != nullptr) {
    tick_soon();
    return 0;
  }
  std::uint64_t ran = 0;
  {
    turn_.lock();
    util::DeferredWakes wakes;
    const Turn turn(*this, By::loop);
    run_all_of_inbox();
    if (!stopped_) run_due_timers(timers_.size());
    run_all_of_inbox();
    ran = ran_;
  }
  work_off_inbox();
  loop_.look_again();
  loop_.drain_user_code();
  return ran + notified_;
}

void ThreadEngine::wait_for_timer_descriptor() {
  timer_descriptor_.async_wait(asio::posix::stream_descriptor::wait_read, [this](std::error_code ec) noexcept {
    if (ec) return;  // closed by stop()
    std::uint64_t expirations = 0;
    (void)::read(timer_descriptor_.native_handle(), &expirations, sizeof expirations);  // only resets readiness
    take_turn_for_loop([this]() DLOCK_REQUIRES(turn_) {
      armed_for_ = TimePoint::max();
      run_due_timers(most_timers_in_a_turn);
    });
    wait_for_timer_descriptor();
  });
}

// The last turn is after all tasks that were accepted before, and only after it may the loop end.
void ThreadEngine::refuse_tasks() {
  const util::MutexLock lock(inbox_mutex_);
  stopped_ = true;
  loop_.post([this] {
    take_turn_for_loop([this] {
      std::error_code ignored;  // closing reports nothing that could be acted on
      timer_descriptor_.close(ignored);
    });
  });
}

void ThreadEngine::stop() {
  refuse_tasks();
  hand_over();
  loop_.stop();
  hand_over();
  loop_.post([this] { loop_.end_work(); });
  if (must_not_block()) {
    thread_.detach();
  } else if (thread_.joinable()) {
    thread_.join();
  }
}

}  // namespace dlock::engine

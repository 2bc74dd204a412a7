#include "engine/thread_engine.hpp"

#include <pthread.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <limits>
#include <string>
#include <utility>

#include <dlock/duration.hpp>
#include <dlock/error.hpp>
#include <dlock/spi/lifetime.hpp>

#include "engine/hand_over.hpp"
#include "util/signals_blocked.hpp"

namespace dlock::engine {

namespace {

// The loop runs further tasks, so that no caller is delayed for long.
constexpr std::size_t most_tasks_in_a_turn = 256;
constexpr std::size_t all = std::numeric_limits<std::size_t>::max();
constexpr std::size_t most_timers_at_once = 64;
constexpr std::size_t most_timers_of_a_caller = 16;
// With so many waiting callers, a caller's turn leaves the tasks that its own task posted, such as sending, to the
// loop, which runs those of all callers at once.
constexpr int many_callers = 16;
// Every eighth turn also runs due timers after its first task, so that timers do not depend on when the loop's thread
// gets a processor.
constexpr std::size_t turns_between_timers = 8;
// The loop's thread leaves timers to callers, if there are any, for this long: a thread that seldom runs soon gets a
// processor when it has losses to signal.
constexpr std::chrono::nanoseconds callers_go_first = std::chrono::microseconds(200);

// A thread that yields between turns is seldom preempted in a turn, when all others would wait for it.
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
  // Whether this thread may wait for another: that one cannot be waiting for this one.
  [[nodiscard]] static bool nothing_that_others_wait_for() noexcept {
    return innermost == nullptr && !EventLoop::on_an_own_thread();
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
      // Refused: the engine was stopped.
      (void)engine.dispatch([life = std::move(life), handler = std::move(handler), ec] {
        if (!life.over()) handler(ec);
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
    engine->moved_clock_ = std::make_shared<MovedClock>(engine);
    engine->clock_->add_listener(engine->moved_clock_);
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
}

// --- Turns -----------------------------------------------------------------------------------------------------------

bool ThreadEngine::inside_task() const noexcept {
  return Inside::task_of(*this);
}

bool ThreadEngine::dispatch(Task task, IfBusy if_busy) {
  if (stopping_) return false;
  if (inside_task()) return enqueue(std::move(task), false);
  if (if_busy == IfBusy::leave_task || !Inside::nothing_that_others_wait_for()) return enqueue(std::move(task), true);
  const bool accepted = wait_for_turn(std::move(task));
  yield_between_turns();
  return accepted;
}

bool ThreadEngine::submit(Task task) {
  return !stopping_ && enqueue(std::move(task), false);
}

// Leaves the task to the turn under way. If there is none, `begins` it or asks the loop to. Without memory the program
// ends: a task that was accepted must run.
bool ThreadEngine::enqueue(Task task, bool begins) noexcept DLOCK_NO_THREAD_SAFETY_ANALYSIS {
  const auto added = turn_.add(task, begins);
  if (added == TurnQueue::Added::with_turn) run_turn(std::move(task), most_tasks_after_own());
  if (added == TurnQueue::Added::ask_loop) ask_loop();
  return added != TurnQueue::Added::refused;
}

// Runs the task behind those that wait now.
bool ThreadEngine::wait_for_turn(Task task) DLOCK_NO_THREAD_SAFETY_ANALYSIS {
  const auto before = turn_.wait_to_begin();
  if (before == TurnQueue::State::stopped) return false;
  const util::DeferredWakes wakes;  // wakes after the turn
  if (before == TurnQueue::State::for_loop) {
    run_batch(all);
    turn_.take_tasks(batch_);
    run_batch(all);
  }
  run_turn(std::move(task), most_tasks_in_a_turn);
  return true;
}

void ThreadEngine::ask_loop() noexcept {
  const auto self = shared_from_this();  // what waits may stop the engine and let go of the caller's reference
  hand_over();
  loop_.post([this] {
    if (turn_.begin_for_loop()) run_turn(nullptr, most_tasks_in_a_turn);
  });
}

std::size_t ThreadEngine::most_tasks_after_own() const noexcept {
  return loop_.callers_waiting() < many_callers || loop_.on_own_thread() ? most_tasks_in_a_turn : 0;
}

void ThreadEngine::run_turn(Task first, std::size_t most) noexcept {
  const util::DeferredWakes wakes;  // wakes after the turn
  if (first) run(std::move(first));
  if (++turns_ % turns_between_timers == 0) run_due_timers(most_timers_of_a_caller);
  for (bool ended = false; !ended;) {
    most = run_batch(most);
    arm_timer();
    const bool last = last_turn_;
    if (!batch_.empty()) {
      turn_.pass_to_loop();
      ask_loop();
      ended = true;
    } else if (turn_.try_end(last)) {
      if (last) loop_.post([this] { loop_.end_work(); });
      ended = true;
    } else {
      turn_.take_tasks(batch_);
    }
  }
  hand_over();
  loop_.look_again();
}

std::size_t ThreadEngine::run_batch(std::size_t most) noexcept {
  for (; !batch_.empty() && most > 0; --most) {
    Task task = std::move(batch_.front());
    batch_.pop_front();
    run(std::move(task));
  }
  return most;
}

void ThreadEngine::run(Task task) noexcept {
  const Inside inside(*this);
  ++ran_;
  task();
  task = nullptr;  // its captures, such as a Timer, may use the executor when they are destroyed
}

// --- User code, and waiting for it -----------------------------------------------------------------------------------

Notified ThreadEngine::notify(Task&& user_code, UserCode kind) {
  // A task that runs while the engine stops is not refused: it could only run the code itself, in the turn. The thread
  // cannot end before that task does.
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

void ThreadEngine::tick() {
  armed_for_ = TimePoint::max();
  run_due_timers(most_timers_at_once);
}

void ThreadEngine::arm_timer() {
  auto next = timers_.next();
  if (next && clock_->runs_by_itself() && !loop_.on_own_thread()) next = saturating_add(*next, callers_go_first);
  if (!next || *next >= armed_for_) return;  // an early wake-up finds nothing due and arms again
  if (!clock_->runs_by_itself()) {
    if (*next > now()) return;  // until the clock is moved
    armed_for_ = *next;
    loop_.post([this] { (void)dispatch([this]() DLOCK_REQUIRES(turn_) { tick(); }); });
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

void ThreadEngine::wait_for_timer_descriptor() {
  timer_descriptor_.async_wait(asio::posix::stream_descriptor::wait_read, [this](std::error_code ec) noexcept {
    if (ec) return;  // closed by stop()
    hand_over();
    (void)dispatch([this]() DLOCK_REQUIRES(turn_) {  // in a turn, because stop() closes the descriptor in one
      std::uint64_t expirations = 0;
      (void)::read(timer_descriptor_.native_handle(), &expirations, sizeof expirations);  // only resets readiness
      wait_for_timer_descriptor();
      tick();
    });
  });
}

// Does not wait on a thread for which others may wait, possibly in advance(). In a child made by fork(), the loop has
// no thread.
std::uint64_t ThreadEngine::clock_moved() noexcept {
  if (fork_generation_ != util::fork_generation()) return 0;
  if (!Inside::nothing_that_others_wait_for()) {
    post([this]() DLOCK_REQUIRES(turn_) { tick(); });
    return 0;
  }
  std::uint64_t ran = 0;
  (void)wait_for_turn([this]() DLOCK_REQUIRES(turn_) { run_due_timers(timers_.size()); });
  // Runs after what those posted. These two tasks are not counted, or a clock would never find its engines idle.
  (void)wait_for_turn([this, &ran]() DLOCK_REQUIRES(turn_) { ran = ran_ -= 2; });
  loop_.drain_user_code();
  return ran + notified_;
}

// The last turn comes after all tasks that were accepted before, and the loop ends only after that turn.
void ThreadEngine::stop() {
  loop_.stop();
  hand_over();
  post([this]() DLOCK_REQUIRES(turn_) {
    std::error_code ignored;  // closing reports nothing that could be acted on
    timer_descriptor_.close(ignored);
    last_turn_ = true;
  });
  stopping_ = true;
  if (must_not_block()) {
    thread_.detach();
  } else if (thread_.joinable()) {
    thread_.join();
  }
}

}  // namespace dlock::engine

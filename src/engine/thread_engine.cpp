#include "engine/thread_engine.hpp"

#include <pthread.h>
#include <signal.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <asio/post.hpp>
#include <string>
#include <utility>

#include <dlock/error.hpp>

namespace dlock::engine {

namespace {

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
  AsioDescriptor(ThreadEngine& engine, int fd) : engine_(engine), descriptor_(engine.io_) {
    std::error_code ec;
    descriptor_.assign(fd, ec);
    if (ec) throw Error(errc::unavailable, "cannot watch a descriptor: " + ec.message());
  }
  ~AsioDescriptor() override { (void)descriptor_.release(); }  // the descriptor belongs to somebody else

  void async_wait(Interest interest, std::function<void(std::error_code)> handler) override {
    const auto what = interest == Interest::readable ? asio::posix::stream_descriptor::wait_read
                                                     : asio::posix::stream_descriptor::wait_write;
    descriptor_.async_wait(what, [&engine = engine_, alive = std::weak_ptr<bool>(alive_),
                                  handler = std::move(handler)](std::error_code ec) mutable {
      engine.run_task([alive = std::move(alive), handler = std::move(handler), ec] {
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
    if (const auto engine = engine_.lock()) (void)engine->enqueue([engine] { engine->tick(); });
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
    : clock_(std::move(clock)),
      random_(std::move(random)),
      io_(1),
      work_(asio::make_work_guard(io_)),
      timer_descriptor_(io_) {}

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

  // Signals are for the program's own threads. A thread inherits the mask of the one that makes it.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  try {
    // The thread shares the ownership, so that stop() on the engine thread itself leaves nothing dangling.
    thread_ = std::thread([self = shared_from_this()] { self->run_thread(); });
  } catch (const std::system_error& e) {
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    throw Error(errc::unavailable, std::string("cannot start the engine thread: ") + e.what());
  }
  pthread_setname_np(thread_.native_handle(), "dlock-engine");  // for people only: a failure does not matter
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void ThreadEngine::run_thread() noexcept {
  thread_id_ = std::this_thread::get_id();
  io_.run();
}

bool ThreadEngine::enqueue(Task handler, bool although_stopping) {
  const util::MutexLock lock(gate_);
  if (stopped_ && !although_stopping) return false;
  asio::post(io_, std::move(handler));
  return true;
}

void ThreadEngine::run(Task task) noexcept {
  const Inside inside(*this);
  task();
  task = nullptr;  // what it holds may use the executor when it goes, a Timer for instance
  arm_timer();
}

void ThreadEngine::run_task(Task task) {
  ++queued_;  // callers that would run inline stand back, or they could starve this thread and its timers
  const util::MutexLock lock(mutex_);
  --queued_;
  run(std::move(task));
}

bool ThreadEngine::inside_task() const noexcept {
  for (const Inside* inside = Inside::innermost; inside != nullptr; inside = inside->outer) {
    if (inside->engine == this) return true;
  }
  return false;
}

bool ThreadEngine::submit(Task task) {
  return enqueue([this, task = std::move(task)]() mutable { run_task(std::move(task)); });
}

bool ThreadEngine::notify(Task user_code) {
  // From a task that still runs while the engine stops it is accepted, because the caller could only run it under the
  // mutex. The thread cannot end before that task does.
  return enqueue(std::move(user_code), inside_task());
}

bool ThreadEngine::dispatch(Task task) {
  if (!inside_task()) {
    if (must_not_block()) {  // in a handler: nothing of this thread is queued that the task could overtake
      const util::MutexLock lock(mutex_);
      if (stopped_) return false;
      run(std::move(task));
      return true;
    }
    // Never overtake a dispatch that had to queue: the calls of one thread take effect in their order.
    if (queued_ == 0 && mutex_.try_lock()) {
      if (!stopped_ && queued_ == 0) {
        run(std::move(task));
        mutex_.unlock();
        return true;
      }
      mutex_.unlock();
    }
  }
  ++queued_;
  const bool accepted = enqueue([this, task = std::move(task)]() mutable {
    const util::MutexLock lock(mutex_);
    --queued_;
    run(std::move(task));
  });
  if (!accepted) --queued_;
  return accepted;
}

bool ThreadEngine::wait(util::Event& event, std::optional<std::chrono::nanoseconds> limit) {
  return event.wait(limit);
}

bool ThreadEngine::must_not_block() const noexcept {
  return inside_task() || thread_id_.load() == std::this_thread::get_id();
}

Executor::TimerId ThreadEngine::schedule(TimePoint at, Task task) {
  return timers_.add(at, std::move(task));
}

void ThreadEngine::cancel(TimerId id) noexcept {
  if (id != 0) timers_.cancel(id);
}

std::unique_ptr<Descriptor> ThreadEngine::watch(int fd) {
  return std::make_unique<AsioDescriptor>(*this, fd);
}

void ThreadEngine::tick() {
  run_task([this]() DLOCK_REQUIRES(mutex_) { run_due_timers(); });
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
      (void)enqueue([this] {
        {
          const util::MutexLock lock(mutex_);
          armed_for_ = TimePoint::max();
        }
        tick();
      });
    }
    return;
  }
  const auto since_epoch = std::max(next->time_since_epoch(), std::chrono::nanoseconds(1));  // 0 would disarm
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(since_epoch);
  itimerspec at{};
  at.it_value.tv_sec = seconds.count();
  at.it_value.tv_nsec = (since_epoch - seconds).count();
  armed_for_ = *next;
  // Cannot fail: the descriptor lives until the thread has ended, and the value is in range.
  (void)timerfd_settime(timer_descriptor_.native_handle(), TFD_TIMER_ABSTIME, &at, nullptr);
}

void ThreadEngine::wait_for_timer_descriptor() {
  timer_descriptor_.async_wait(asio::posix::stream_descriptor::wait_read, [this](std::error_code ec) {
    if (ec) return;  // closed by stop()
    std::uint64_t expirations = 0;
    (void)::read(timer_descriptor_.native_handle(), &expirations, sizeof expirations);  // only resets readiness
    {
      const util::MutexLock lock(mutex_);
      armed_for_ = TimePoint::max();
    }
    tick();
    wait_for_timer_descriptor();
  });
}

void ThreadEngine::stop() {
  {
    // In one step, or the thread could end between the two and leave behind what was accepted in the meantime.
    const util::MutexLock lock(gate_);
    stopped_ = true;
    asio::post(io_, [this] {
      const util::MutexLock serialised(mutex_);
      std::error_code ignored;  // closing reports nothing that could be acted on
      timer_descriptor_.close(ignored);
      work_.reset();
    });
  }
  if (must_not_block()) {
    thread_.detach();
  } else if (thread_.joinable()) {
    thread_.join();
  }
}

}  // namespace dlock::engine

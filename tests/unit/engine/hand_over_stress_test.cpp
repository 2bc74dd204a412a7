// Many threads against an engine. They are delayed wherever one hands something over to another (engine/hand_over.hpp).
// A seed decides what the threads do and, as far as the scheduler lets it, which thread is delayed where.
// A crash or a hang is of the last seed that was printed.
//
//   DLOCK_ENGINE_SEED=4711   runs this seed alone
//   DLOCK_ENGINE_SEEDS=1000  runs so many, instead of as many as fit into a few seconds
//
// Long, because it is one program: what the threads do, what they remember of it, and what must hold in the end.
#include "engine/hand_over.hpp"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <barrier>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <dlock/clock.hpp>

#include "engine/thread_engine.hpp"
#include "torture/dice.hpp"
#include "torture/rig/hang_guard.hpp"
#include "util/event.hpp"
#include "util/pause.hpp"

namespace dlock::engine {

namespace {

using namespace std::chrono_literals;
using torture::Dice;

std::atomic<std::uint64_t> current_seed = 0;
std::atomic<std::uint64_t> threads_seen = 0;  // with this seed

void spin(std::uint64_t rounds) {
  for (; rounds > 0; --rounds) util::pause_processor();
}

}  // namespace

void hand_over() noexcept {
  thread_local std::uint64_t seed = 0;
  thread_local std::optional<Dice> dice;
  if (!dice || seed != current_seed) {
    seed = current_seed;
    dice.emplace(seed * 1000 + threads_seen++);
  }
  const auto rolled = dice->below(1000);
  if (rolled < 2) {
    std::this_thread::sleep_for(100us);
  } else if (rolled < 60) {
    std::this_thread::yield();
  } else if (rolled < 160) {
    spin(dice->below(200));
  }
}

namespace {

// An event that a thread waits for, and that a timer, the other end of a connection or another thread's task sets. Or,
// when the engine has stopped, the test.
class Wish {
 public:
  explicit Wish(util::Event& event) : event_(&event) {}
  // After the first call, or the take_back(), the event may be gone.
  void grant() {
    if (!granted_.exchange(true)) event_->set();
  }
  // False: somebody grants it at this moment.
  [[nodiscard]] bool take_back() { return !granted_.exchange(true); }

 private:
  std::atomic<bool> granted_ = false;
  util::Event* const event_;
};

// An engine, its threads, and what its turns guard.
class Round {
 public:
  explicit Round(std::uint64_t seed);
  Round(const Round&) = delete;
  Round& operator=(const Round&) = delete;
  void run();

 private:
  class Worker;
  enum class Stopper { main, thread, task, user_code };
  enum class Way { leave_task, wait_for_turn, submit };
  enum Step : std::size_t { run_and_wait, burst, meet, ask, set_timer, cancel_timer, complete, nest };

  // The first of them, and each of the others perhaps: a task that is forgotten is found by the next that comes in
  // another way, so there have to be rounds without those.
  template <class Choice>
  [[nodiscard]] std::vector<Choice> some_up_to(Choice last) {
    std::vector<Choice> some{Choice{}};
    for (int i = 1; i <= static_cast<int>(last); ++i) {
      if (dice_.chance(50)) some.push_back(static_cast<Choice>(i));
    }
    return some;
  }

  void expect(bool holds, const char* what) const {
    if (!holds) ADD_FAILURE() << what << "; DLOCK_ENGINE_SEED=" << seed_;
  }
  void enter() {
    expect(!inside_, "one task at a time");
    expect(engine_->must_not_block(), "a task must not block");
    inside_ = true;
    ++ran_;
  }
  void leave() { inside_ = false; }

  void start_answers();
  void expect_answers();
  void answer() const;
  std::shared_ptr<Wish> wish(util::Event& event);
  void grant_all();
  void stop();

  const std::uint64_t seed_;
  Dice dice_{seed_};
  const std::size_t threads_ = dice_.chance(10) ? 64 : dice_.chance(40) ? 2 + dice_.below(3) : 8 + dice_.below(9);
  const int calls_ = static_cast<int>(500 / threads_) + 1;  // of each thread
  const std::vector<Way> ways_ = some_up_to(Way::submit);
  const std::vector<Step> steps_ = some_up_to(Step::nest);
  const bool timers_ = std::ranges::count(steps_, Step::set_timer) > 0;
  const bool meets_ = std::ranges::count(steps_, Step::meet) > 0;
  const bool manual_ = dice_.chance(30);
  const std::shared_ptr<ManualClock> manual_clock_ = std::make_shared<ManualClock>();
  const std::shared_ptr<Clock> clock_ = manual_ ? std::shared_ptr<Clock>(manual_clock_) : boottime_clock();
  const Stopper stopper_ = dice_.chance(50) ? Stopper::main : static_cast<Stopper>(1 + dice_.below(3));
  const std::size_t stopping_thread_ = dice_.below(threads_);
  const int stopping_call_ = static_cast<int>(dice_.below(static_cast<std::uint64_t>(calls_)));

  const std::shared_ptr<Engine> engine_ = ThreadEngine::start(clock_, [] { return std::uint64_t{4}; });
  bool inside_ = false;
  std::vector<int> last_ = std::vector<int>(threads_, 0);  // number of the task that ran last, by thread
  std::uint64_t ran_ = 0;
  std::deque<std::shared_ptr<Wish>> parked_;  // until a task of another thread comes
  std::deque<std::shared_ptr<Wish>> asked_;   // until the other end answers
  std::unique_ptr<Descriptor> descriptor_;
  std::array<int, 2> ends_{-1, -1};
  std::atomic<std::uint64_t> accepted_ = 0;

  std::vector<std::unique_ptr<Worker>> workers_;  // tasks know them until the engine has ended
  // Otherwise the next step of another thread finds what was forgotten.
  const bool in_step_ = dice_.chance(60);
  std::barrier<> step_done_{static_cast<std::ptrdiff_t>(threads_)};
  std::atomic<std::size_t> working_ = threads_;
  std::atomic<bool> stopped_ = false;

  std::atomic<std::uint64_t> user_code_accepted_ = 0;
  std::uint64_t user_code_ran_ = 0;  // on the engine's thread, as the next
  std::vector<int> last_completion_ = std::vector<int>(threads_, 0);

  std::mutex wishes_mutex_;
  std::vector<std::shared_ptr<Wish>> wishes_;
};

// The steps of one of the threads.
class Round::Worker {
 public:
  Worker(Round& round, std::size_t number) : round_(round), number_(number), dice_(round.seed_ * 100 + number + 1) {}

  void work() {
    for (int call = 0; call < round_.calls_; ++call) {
      if (round_.stopper_ != Stopper::main && number_ == round_.stopping_thread_ && call == round_.stopping_call_)
        stop();
      step();
      if (round_.in_step_) round_.step_done_.arrive_and_wait();
    }
    --round_.working_;
  }

 private:
  void step() {
    static constexpr std::array steps{&Worker::run_and_wait, &Worker::burst,        &Worker::meet,     &Worker::ask,
                                      &Worker::set_timer,    &Worker::cancel_timer, &Worker::complete, &Worker::nest};
    (this->*steps.at(dice_.pick(round_.steps_)))();
  }

  // In any of the ways. Tasks of one thread run in the order of the calls.
  template <class Body>
  bool give(Body body) {
    const int number = calls_ + 1;
    Task task = [this, number, body = std::move(body)]() mutable {
      round_.enter();
      round_.expect(round_.last_[number_] == number - 1, "in the order of the calls, none twice and none left out");
      round_.last_[number_] = number;
      body();
      round_.leave();
    };
    const auto way = dice_.pick(round_.ways_);
    bool accepted = false;
    if (way != Way::wait_for_turn) {
      accepted =
          way == Way::submit ? round_.engine_->submit(std::move(task)) : round_.engine_->dispatch(std::move(task));
    } else {
      bool ran = false;
      Task telling = [&ran, task = std::move(task)] {
        task();
        ran = true;
      };
      accepted = round_.engine_->dispatch(std::move(telling), IfBusy::wait_for_turn);
      round_.expect(ran == accepted, "who waits for a turn returns when the task has run");
    }
    if (accepted) {
      ++calls_;
      ++round_.accepted_;
      round_.expect(!refused_, "once stopped, all is refused");
    } else {
      refused_ = true;
      round_.expect(round_.stopper_ != Stopper::main, "nothing is refused before stop()");
    }
    return accepted;
  }

  // The event is destroyed as soon as it is seen to be set.
  void await(util::Event& event) {
    const auto how = dice_.below(10);
    const auto end = std::chrono::steady_clock::now() + rig::hang_guard;
    while (how == 9 && !event.is_set() && std::chrono::steady_clock::now() < end) std::this_thread::yield();
    if (!(how < 6 ? round_.engine_->wait(event, rig::hang_guard) : event.wait(rig::hang_guard))) {
      std::fputs("a wait does not end\n", stderr);
      std::abort();  // the event is about to go while others know of it
    }
  }

  void run_and_wait() {
    util::Event event;
    if (give([&event] { event.set(); })) await(event);
  }

  // More at times than one turn runs.
  void burst() {
    const auto count = dice_.chance(2) ? 400 : dice_.below(20);
    util::Event event;
    for (std::uint64_t i = 0; i < count; ++i) {
      if (!give([] {})) return;
    }
    if (give([&event] { event.set(); })) await(event);
  }

  template <class Body>
  void give_and_await_wish(Body body) {
    util::Event event;
    const auto wish = round_.wish(event);
    const bool accepted = give([wish, body = std::move(body)] { body(wish); });
    if (!accepted && wish->take_back()) return;
    await(event);
  }

  // Each second one is granted by the task of the next thread that comes.
  void meet() {
    give_and_await_wish([this](const std::shared_ptr<Wish>& wish) {
      if (!round_.parked_.empty()) {
        round_.parked_.front()->grant();
        round_.parked_.pop_front();
      }
      round_.parked_.push_back(wish);
    });
  }

  void ask() {
    give_and_await_wish([this](const std::shared_ptr<Wish>& wish) {
      if (!round_.descriptor_) return wish->grant();
      round_.asked_.push_back(wish);
      if (send(round_.ends_[0], "x", 1, MSG_NOSIGNAL) != 1) round_.expect(false, "there is room for a byte");
    });
  }

  void set_timer() {
    const auto delay = dice_.between(-10us, 300us);
    give_and_await_wish([this, delay](const std::shared_ptr<Wish>& wish) {
      const TimePoint at = round_.engine_->now() + delay;
      (void)round_.engine_->schedule(at, [this, wish, at] {
        round_.enter();
        --round_.ran_;
        round_.expect(round_.clock_->now() >= at, "a timer runs when it is due");
        wish->grant();
        round_.leave();
      });
    });
  }

  void cancel_timer() {
    const auto delay = dice_.between(0us, 300us);
    const auto id = std::make_shared<Executor::TimerId>(0);
    const auto cancelled = std::make_shared<bool>(false);
    (void)give([this, delay, id, cancelled] {
      *id = round_.engine_->schedule(round_.engine_->now() + delay, [this, cancelled] {
        round_.expect(!*cancelled, "a timer that was cancelled does not run");
        *cancelled = true;  // an id that has run is ignored
      });
    });
    if (dice_.chance(50)) spin(dice_.below(3000));
    (void)give([this, id, cancelled] {
      round_.engine_->cancel(*id);
      *cancelled = true;
    });
  }

  // User code: on the engine's thread, outside of tasks, in the order of the calls. It may give tasks.
  void complete() {
    util::Event event;
    const int number = completions_ + 1;
    const bool dispatches = dice_.chance(50);
    Task code = [this, &event, number, dispatches] {
      ++round_.user_code_ran_;
      round_.expect(round_.last_completion_[number_] == number - 1, "completions in the order of the calls");
      round_.last_completion_[number_] = number;
      round_.expect(round_.engine_->must_not_block(), "user code is on the engine's thread");
      if (dispatches && round_.engine_->dispatch([this] {
            round_.enter();
            round_.leave();
          })) {
        ++round_.accepted_;
      }
      event.set();
    };
    if (round_.engine_->notify(std::move(code), UserCode::completion) == Notified::accepted) {
      ++completions_;
      ++round_.user_code_accepted_;
      await(event);
    }
  }

  // A task gives its engine another task, and hands user code over.
  void nest() {
    util::Event event;
    std::atomic<int> left = 2;
    const auto one_less = [&left, &event] {
      if (--left == 0) event.set();
    };
    const auto inner = [this, one_less] {
      round_.enter();
      round_.leave();
      one_less();
    };
    const bool waits = dice_.chance(50);
    const bool accepted = give([&, this, waits] {
      const auto ran = round_.ran_;
      if (round_.engine_->dispatch(inner, waits ? IfBusy::wait_for_turn : IfBusy::leave_task)) {
        ++round_.accepted_;
      } else {
        one_less();
      }
      round_.expect(round_.ran_ == ran, "never inside another task of the same engine");
      const auto notified = round_.engine_->notify(
          [this, one_less] {
            ++round_.user_code_ran_;
            one_less();
          },
          UserCode::loss_signal);
      round_.expect(notified == Notified::accepted, "user code of a task is accepted");
      ++round_.user_code_accepted_;
    });
    if (accepted) await(event);
  }

  void stop() {
    auto& engine = *round_.engine_;
    if (round_.stopper_ == Stopper::thread) return round_.stop();
    util::Event event;
    const auto stop_and_tell = [this, &event] {
      round_.stop();
      event.set();
    };
    if (round_.stopper_ == Stopper::task) {
      (void)engine.dispatch(stop_and_tell);
    } else {
      (void)engine.notify(stop_and_tell, UserCode::completion);
    }
    await(event);
  }

  Round& round_;
  const std::size_t number_;
  Dice dice_;
  int calls_ = 0;  // that were accepted
  int completions_ = 0;
  bool refused_ = false;
};

Round::Round(std::uint64_t seed) : seed_(seed) {}

// The other end of a connection: it answers each byte with one.
void Round::answer() const {
  char byte = 0;
  while (read(ends_[1], &byte, 1) == 1) {
    hand_over();
    if (send(ends_[1], &byte, 1, MSG_NOSIGNAL) != 1) return;
  }
}

void Round::start_answers() {
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends_.data()) != 0) std::abort();
  util::Event watched;
  if (!engine_->submit([this, &watched] {
        descriptor_ = engine_->watch(ends_[0]);
        expect_answers();
        watched.set();
      })) {
    std::abort();
  }
  (void)watched.wait();
}

void Round::expect_answers() {
  descriptor_->async_wait(Descriptor::Interest::readable, [this](std::error_code ec) {
    if (ec) return;
    enter();
    --ran_;
    char byte = 0;
    const auto received = recv(ends_[0], &byte, 1, MSG_DONTWAIT);
    if (received == 1) {
      expect(!asked_.empty(), "nothing comes without being asked for");
      asked_.front()->grant();
      asked_.pop_front();
    }
    leave();
    if (received != 0) expect_answers();
  });
}

std::shared_ptr<Wish> Round::wish(util::Event& event) {
  auto wish = std::make_shared<Wish>(event);
  const std::lock_guard lock(wishes_mutex_);
  wishes_.push_back(wish);
  return wish;
}

void Round::grant_all() {
  std::vector<std::shared_ptr<Wish>> all;
  {
    const std::lock_guard lock(wishes_mutex_);
    all.swap(wishes_);
  }
  for (const auto& wish : all) wish->grant();
}

void Round::stop() {
  // A descriptor that is watched would keep the loop.
  (void)engine_->dispatch([this] { descriptor_.reset(); });
  engine_->stop();
  stopped_ = true;
}

void Round::run() {
  std::vector<std::thread> threads;
  start_answers();
  threads.emplace_back([this] { answer(); });
  for (std::size_t t = 0; t < threads_; ++t) workers_.push_back(std::make_unique<Worker>(*this, t));
  for (const auto& worker : workers_) {
    threads.emplace_back([&worker] { worker->work(); });
  }
  // Moves the manual clock, and grants what nobody else will.
  for (util::Event pause; working_ > 0; (void)pause.wait(200us)) {
    if (stopped_) grant_all();
    if (manual_ && timers_) manual_clock_->advance(dice_.between(1us, 100us));
    if (!meets_) continue;
    engine_->post([this] {
      for (const auto& wish : parked_) wish->grant();
      parked_.clear();
    });
  }
  if (stopper_ == Stopper::main) stop();
  (void)shutdown(ends_[1], SHUT_RDWR);
  for (auto& thread : threads) thread.join();
  if (stopper_ != Stopper::main && stopper_ != Stopper::thread) {
    // The engine's thread has gone when only this test holds the engine.
    while (engine_.use_count() > 1) std::this_thread::yield();
    const auto sees_what_it_did = std::shared_ptr<Engine>(engine_);
  }
  expect(ran_ == accepted_, "all that was accepted ran");
  for (const int fd : ends_) (void)close(fd);
  expect(user_code_ran_ == user_code_accepted_, "all user code that was accepted ran");
}

std::optional<std::uint64_t> number_from(const char* variable) {
  const char* const text = std::getenv(variable);
  if (text == nullptr) return std::nullopt;
  return std::strtoull(text, nullptr, 10);
}

TEST(HandOver, DelayedThreads_LoseNoTaskAndNoWakeUp) {
  const auto one = number_from("DLOCK_ENGINE_SEED");
  const auto count = one ? 1 : number_from("DLOCK_ENGINE_SEEDS");
  const std::uint64_t first =
      one.value_or(static_cast<std::uint64_t>(std::chrono::system_clock::now().time_since_epoch().count()) % 1'000'000);
  const auto end = std::chrono::steady_clock::now() + 5s;
  std::uint64_t seeds = 0;
  for (; !HasFailure() && (count ? seeds < *count : std::chrono::steady_clock::now() < end); ++seeds) {
    current_seed = first + seeds;
    threads_seen = 0;
    std::fprintf(stderr, "\rDLOCK_ENGINE_SEED=%llu", static_cast<unsigned long long>(current_seed.load()));
    Round(current_seed).run();
  }
  std::printf("\n%llu seeds from %llu\n", static_cast<unsigned long long>(seeds),
              static_cast<unsigned long long>(first));
}

}  // namespace
}  // namespace dlock::engine

#include "engine/thread_engine.hpp"

#include <gtest/gtest.h>
#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <fstream>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <dlock/clock.hpp>

#include "tests/support/engine_fixture.hpp"

namespace dlock::engine {
namespace {

using namespace std::chrono_literals;
using test::BlockedEngine;

class ThreadEngineTest : public test::EngineTest {};

bool is_asleep(pid_t thread) {
  std::ifstream in("/proc/self/task/" + std::to_string(thread) + "/stat");
  std::string skipped;
  std::string state;
  in >> skipped >> skipped >> state;
  return state == "S";
}

TEST_F(ThreadEngineTest, Dispatch_RunsOnTheCallersThreadUnlessTheEngineIsBusy) {
  std::thread::id ran_on;
  EXPECT_TRUE(engine_->dispatch([&] { ran_on = std::this_thread::get_id(); }));
  EXPECT_EQ(ran_on, std::this_thread::get_id());
  util::Event inner;
  EXPECT_TRUE(engine_->dispatch([&] {
    EXPECT_TRUE(engine_->dispatch([&] { inner.set(); }));
    EXPECT_FALSE(inner.is_set()) << "queued behind the task that runs";
  }));
  EXPECT_TRUE(inner.wait(rig::hang_guard));
  util::Event ran;
  {
    const BlockedEngine blocked(*engine_);
    EXPECT_TRUE(engine_->dispatch([&] { ran.set(); }));
    EXPECT_FALSE(ran.is_set());
  }
  EXPECT_TRUE(ran.wait(rig::hang_guard));
  util::Event posted;
  engine_->post([&] {
    EXPECT_NE(std::this_thread::get_id(), ran_on);
    posted.set();
  });
  EXPECT_TRUE(engine_->wait(posted, rig::hang_guard));
  util::Event never;
  EXPECT_FALSE(engine_->wait(never, 1ms));
  EXPECT_EQ(engine_->random(), 4U);
}

TEST_F(ThreadEngineTest, ClockAdvancedInATask_LeavesTimersToTheLoop) {
  const auto other = start();
  for (const auto& inside : {engine_, other}) {
    util::Event ran;
    EXPECT_TRUE(inside->dispatch([&] { clock_->advance(1s); }));
    EXPECT_TRUE(engine_->dispatch([&] {
      (void)engine_->schedule(engine_->now() + 1s, [&] { ran.set(); });
      clock_->advance(1s);
      EXPECT_FALSE(ran.is_set());
    }));
    EXPECT_TRUE(ran.wait(rig::hang_guard));
    EXPECT_EQ(inside->notify([&] { clock_->advance(1s); }, UserCode::completion), Notified::accepted);
  }
  other->stop();  // after its user code, which uses the test's clock
}

TEST_F(ThreadEngineTest, AdvancedClock_EndsThoughTimersArmEachOther) {
  std::function<void()> again = [&] { (void)engine_->schedule(engine_->now(), [&] { again(); }); };
  EXPECT_TRUE(engine_->dispatch([&] { again(); }));
  clock_->advance(1s);
  EXPECT_TRUE(engine_->dispatch([&] { again = [] {}; }));
  clock_->advance(1s);  // the last of them
}

TEST_F(ThreadEngineTest, TasksOfTwoEngines_MayNest) {
  const auto other = start();
  bool nested = false;
  while (!nested && !HasFailure()) {  // an engine whose thread has just been busy does not run a task inline
    util::Event inner_over;
    util::Event queued_over;
    bool ran_inside = false;
    EXPECT_TRUE(engine_->dispatch([&] {
      EXPECT_TRUE(other->dispatch([&] {
        nested = engine_->must_not_block();  // still inside the outer task
        EXPECT_TRUE(engine_->dispatch([&] {
          ran_inside = nested && !inner_over.is_set();
          queued_over.set();
        }));
        inner_over.set();
      }));
      EXPECT_FALSE(other->must_not_block());
    }));
    ASSERT_TRUE(inner_over.wait(rig::hang_guard));
    ASSERT_TRUE(queued_over.wait(rig::hang_guard));
    EXPECT_FALSE(ran_inside) << "never inside another task of the same engine";
  }
  EXPECT_TRUE(nested);
  other->stop();
}

TEST_F(ThreadEngineTest, Task_DestroysItsCapturesInItsTurn) {
  // Destructors may use the executor (a Timer does), so they must be serialised with tasks.
  struct Probe {
    explicit Probe(Engine& e, std::atomic<int>& q) : engine(&e), queued(&q) {}
    Probe(const Probe&) = delete;
    Probe& operator=(const Probe&) = delete;
    ~Probe() {
      bool inline_now = false;
      const bool accepted = engine->dispatch([&inline_now, live = live] {
        if (*live) inline_now = true;
      });
      *live = false;
      if (accepted && !inline_now) ++*queued;
    }
    Engine* engine;
    std::atomic<int>* queued;
    std::shared_ptr<bool> live = std::make_shared<bool>(true);
  };
  std::atomic<int> destroyed_inside_tasks = 0;
  const auto make_probe = [&] { return std::make_shared<Probe>(*engine_, destroyed_inside_tasks); };
  engine_->post([probe = make_probe()] {});
  flush();
  EXPECT_EQ(destroyed_inside_tasks, 1) << "post";
  EXPECT_TRUE(engine_->dispatch([probe = make_probe()] {}));
  flush();
  EXPECT_EQ(destroyed_inside_tasks, 2) << "dispatch on this thread";
  {
    const BlockedEngine blocked(*engine_);
    EXPECT_TRUE(engine_->dispatch([probe = make_probe()] {}));
    blocked.unblock();
  }
  flush();
  EXPECT_EQ(destroyed_inside_tasks, 3) << "queued dispatch";
  EXPECT_TRUE(engine_->dispatch([&] { (void)engine_->schedule(engine_->now(), [probe = make_probe()] {}); }));
  clock_->advance(1ns);
  flush();
  flush();
  EXPECT_EQ(destroyed_inside_tasks, 4) << "timer";
}

TEST_F(ThreadEngineTest, Signals_AreBlockedOnTheEngineThread) {
  util::Event done;
  sigset_t blocked;
  sigemptyset(&blocked);
  EXPECT_TRUE(notify(*engine_, [&] {
    pthread_sigmask(SIG_SETMASK, nullptr, &blocked);
    done.set();
  }));
  ASSERT_TRUE(done.wait(rig::hang_guard));
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGCHLD, SIGUSR1, SIGALRM}) {
    EXPECT_EQ(sigismember(&blocked, signal), 1) << signal;
  }
  sigset_t ours;
  pthread_sigmask(SIG_SETMASK, nullptr, &ours);
  EXPECT_EQ(sigismember(&ours, SIGTERM), 0) << "the caller's own mask is as before";
}

// --- Turns -----------------------------------------------------------------------------------------------------------

TEST_F(ThreadEngineTest, DispatchInATaskOfAnotherEngine_DoesNotWait) {
  const auto other = start();
  util::Event ran;
  {
    const BlockedEngine held(*other, BlockedEngine::By::task_of_another_thread);
    EXPECT_TRUE(engine_->dispatch([&] { EXPECT_TRUE(other->dispatch([&] { ran.set(); }, IfBusy::wait_for_turn)); },
                                  IfBusy::wait_for_turn));
    EXPECT_FALSE(ran.is_set());
  }
  EXPECT_TRUE(ran.wait(rig::hang_guard));
  other->stop();
}

// The rest of a turn, which is longer than a turn may be, waits for the engine's thread.
TEST_F(ThreadEngineTest, DispatchAfterALongTurn_StaysBehindItsRest) {
  constexpr int count = 2000;
  std::vector<int> seen;
  const auto append = [&](int i) { return [&seen, i] { seen.push_back(i); }; };
  {
    const BlockedEngine busy(*engine_, BlockedEngine::By::user_code);
    {
      const BlockedEngine held(*engine_, BlockedEngine::By::task_of_another_thread);
      for (int i = 0; i < count; ++i) EXPECT_TRUE(engine_->dispatch(append(i)));
    }
    EXPECT_TRUE(engine_->dispatch(append(count)));
    EXPECT_TRUE(engine_->dispatch(append(count + 1)));
    EXPECT_LT(seen.size(), std::size_t{count});
  }
  EXPECT_TRUE(engine_->dispatch(append(count + 2), IfBusy::wait_for_turn));
  EXPECT_EQ(seen.size(), std::size_t{count} + 3);
  EXPECT_TRUE(std::is_sorted(seen.begin(), seen.end()));
}

TEST_F(ThreadEngineTest, ThreadThatATaskWakes_FindsTheTurnOver) {
  for (int round = 0; round < 20; ++round) {
    util::Event event;
    std::atomic<pid_t> id = 0;
    std::thread waiter([&] {
      id = static_cast<pid_t>(syscall(SYS_gettid));
      EXPECT_TRUE(event.wait(rig::hang_guard));
      std::thread::id ran_on;
      EXPECT_TRUE(engine_->dispatch([&] { ran_on = std::this_thread::get_id(); }));
      EXPECT_EQ(ran_on, std::this_thread::get_id()) << "the engine was idle";
    });
    while (!is_asleep(id)) std::this_thread::yield();
    EXPECT_TRUE(engine_->dispatch([&] {
      event.set();
      for (int i = 0; i < 200; ++i) std::this_thread::yield();  // it would come now
    }));
    waiter.join();
  }
}

// --- Timers ----------------------------------------------------------------------------------------------------------

TEST_F(ThreadEngineTest, TimerOnTheRealClock_RunsInTime) {
  const std::shared_ptr<Engine> engine = ThreadEngine::start(boottime_clock(), [] { return std::uint64_t{4}; });
  util::Event second;
  util::Event past;
  const TimePoint start = engine->now();
  EXPECT_TRUE(engine->dispatch([&] {
    (void)engine->schedule(start + 1h, [] { FAIL(); });
    (void)engine->schedule(TimePoint::max(), [] { FAIL(); });
  }));
  EXPECT_TRUE(engine->dispatch([&] {
    (void)engine->schedule(start + 20ms, [&] {
      EXPECT_GE(engine->now(), start + 20ms);
      second.set();
    });
    (void)engine->schedule(start + 5ms, [&] {
      EXPECT_GE(engine->now(), start + 5ms);
      EXPECT_FALSE(second.is_set());
    });
    (void)engine->schedule(TimePoint::min(), [&] { past.set(); });
    EXPECT_FALSE(past.is_set()) << "not inside the call";
  }));
  EXPECT_TRUE(past.wait(rig::hang_guard));
  EXPECT_TRUE(second.wait(rig::hang_guard));
  {
    const BlockedEngine busy(*engine, BlockedEngine::By::user_code);
    std::thread::id ran_on;
    EXPECT_TRUE(engine->dispatch(
        [&] { (void)engine->schedule(engine->now() - 1s, [&] { ran_on = std::this_thread::get_id(); }); }));
    for (int i = 0; i < 16; ++i) EXPECT_TRUE(engine->dispatch([] {}));
    EXPECT_EQ(ran_on, std::this_thread::get_id()) << "callers run due timers, too";
  }
  engine->stop();
}

TEST_F(ThreadEngineTest, TimersThatArmEachOther_DelayNoTask) {
  std::atomic<bool> go_on = true;
  util::Event ended;
  std::function<void()> again = [&] {
    if (go_on) {
      (void)engine_->schedule(engine_->now(), again);
    } else {
      ended.set();
    }
  };
  EXPECT_TRUE(engine_->dispatch(again));
  flush();
  flush();
  go_on = false;
  EXPECT_TRUE(ended.wait(rig::hang_guard));
}

TEST_F(ThreadEngineTest, Timer_MayBeDestroyedByItsTask) {
  util::Event done;
  auto timer = std::make_shared<Timer>(*engine_);
  EXPECT_TRUE(engine_->dispatch([&] {
    timer->arm(engine_->now() + 1s, [&] {
      timer.reset();
      done.set();
    });
    EXPECT_TRUE(timer->armed());
  }));
  clock_->advance(1s);
  ASSERT_TRUE(done.wait(rig::hang_guard));
}

TEST_F(ThreadEngineTest, ManyDueTimers_AllRunAndDelayNoLossSignal) {
  constexpr int count = 10'000;
  const std::shared_ptr<Engine> on_real_clock = ThreadEngine::start(boottime_clock(), [] { return std::uint64_t{4}; });
  for (const auto& engine : {engine_, on_real_clock}) {
    std::atomic<int> ran = 0;
    std::atomic<int> ran_before_signal = count;
    util::Event all_ran;
    EXPECT_TRUE(engine->dispatch([&] {
      const auto due = engine->now() - 1s;
      (void)engine->schedule(due, [&] {
        EXPECT_EQ(engine->notify([&] { ran_before_signal = ran.load(); }, UserCode::loss_signal), Notified::accepted);
      });
      for (int i = 0; i < count; ++i) {
        (void)engine->schedule(due, [&] {
          if (++ran == count) all_ran.set();
        });
      }
    }));
    ASSERT_TRUE(all_ran.wait(rig::hang_guard));
    EXPECT_LT(ran_before_signal, count / 10);
  }
  on_real_clock->stop();
}

// A thread that was taken off its processor in its turn does not keep losses back.
TEST_F(ThreadEngineTest, Loss_IsSignalledWhileTheLoopWaitsForATurn) {
  const BlockedEngine held(*engine_, BlockedEngine::By::task_of_another_thread);
  EXPECT_TRUE(engine_->submit([] {}));  // now the loop waits
  for (int i = 0; i < 20; ++i) {
    const auto signalled = std::make_shared<util::Event>();
    EXPECT_EQ(engine_->notify([signalled] { signalled->set(); }, UserCode::loss_signal), Notified::accepted);
    EXPECT_TRUE(signalled->wait(rig::hang_guard));
  }
}

}  // namespace
}  // namespace dlock::engine

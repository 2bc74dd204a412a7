// Siblings: a serialisation for each, and one thread, one set of queues and one end for all.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include <dlock/clock.hpp>

#include "engine/thread_engine.hpp"
#include "tests/support/engine_fixture.hpp"

namespace dlock::engine {
namespace {

using namespace std::chrono_literals;

class ThreadEngineSiblingsTest : public test::EngineTest {
 protected:
  std::shared_ptr<Engine> sibling_ = engine_->sibling();
};

TEST_F(ThreadEngineSiblingsTest, TasksOfTwoSiblingsCanRunAtTheSameTime) {
  for (const auto& [one, other] : {std::pair(engine_, sibling_), std::pair(sibling_, engine_)}) {
    util::Event inside;
    util::Event go_on;
    std::thread blocker([&, &blocked = one] {
      EXPECT_TRUE(blocked->dispatch([&] {
        inside.set();
        EXPECT_TRUE(go_on.wait(rig::hang_guard));
      }));
    });
    ASSERT_TRUE(inside.wait(rig::hang_guard));
    bool ran = false;
    EXPECT_TRUE(other->dispatch([&] { ran = true; }, IfBusy::wait_for_turn));
    EXPECT_TRUE(ran);
    go_on.set();
    blocker.join();
  }
}

TEST_F(ThreadEngineSiblingsTest, TasksOfASiblingAreSerialisedAndInOrder) {
  std::vector<int> seen;
  {
    const test::BlockedEngine blocked(*sibling_);
    for (int i = 0; i < 1000; ++i)
      EXPECT_TRUE(i % 2 == 0 ? sibling_->submit([&seen, i] { seen.push_back(i); })
                             : sibling_->dispatch([&seen, i] { seen.push_back(i); }));
    EXPECT_TRUE(seen.empty());
  }
  EXPECT_TRUE(sibling_->dispatch([&] { EXPECT_EQ(seen.size(), 1000U); }, IfBusy::wait_for_turn));
  EXPECT_TRUE(std::is_sorted(seen.begin(), seen.end()));
}

TEST_F(ThreadEngineSiblingsTest, UserCodeOfAllRunsOnOneThreadInOneOrder) {
  std::vector<int> order;
  std::vector<std::thread::id> threads;
  util::Event last;
  {
    const test::BlockedEngine blocked(*engine_);
    for (int i = 0; i < 6; ++i) {
      EXPECT_TRUE(notify(i % 2 == 0 ? *engine_ : *sibling_, [&, i] {
        order.push_back(i);
        threads.push_back(std::this_thread::get_id());
        EXPECT_TRUE(engine_->must_not_block());
        EXPECT_TRUE(sibling_->must_not_block());
        if (i == 5) last.set();
      }));
    }
  }
  ASSERT_TRUE(last.wait(rig::hang_guard));
  EXPECT_EQ(order, (std::vector{0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(threads, std::vector(6, threads.front()));
  EXPECT_NE(threads.front(), std::this_thread::get_id());
}

// As where the loop's thread gets no processor.
TEST_F(ThreadEngineSiblingsTest, CallersRunWhatASiblingIsLateWith) {
  const auto stranger = start();
  for (const auto& [late, called] : {std::pair(engine_, sibling_), std::pair(sibling_, engine_)}) {
    const auto held_up = std::make_shared<util::Event>();
    const auto go_on = std::make_shared<util::Event>();
    ASSERT_TRUE(notify(*engine_, [held_up, go_on] {
      held_up->set();
      EXPECT_TRUE(go_on->wait(rig::hang_guard));
    }));
    ASSERT_TRUE(held_up->wait(rig::hang_guard));
    std::thread::id ran_on;
    EXPECT_TRUE(late->dispatch([&, &executor = late] {
      (void)executor->schedule(executor->now() + 1ms, [&] { ran_on = std::this_thread::get_id(); });
    }));
    EXPECT_TRUE(stranger->dispatch([&] { clock_->advance(2ms); }));  // where it waits for nobody
    const auto give_up = std::chrono::steady_clock::now() + rig::hang_guard;
    while (ran_on == std::thread::id() && std::chrono::steady_clock::now() < give_up) {
      EXPECT_TRUE(called->dispatch([] {}, IfBusy::wait_for_turn));
    }
    EXPECT_EQ(ran_on, std::this_thread::get_id());
    go_on->set();
  }
}

// Nor may a thread that was taken off its processor in its turn keep losses back.
TEST_F(ThreadEngineSiblingsTest, LossesAreSignalledWhileTheLoopWaitsForATurn) {
  util::Event inside;
  util::Event go_on;
  std::thread blocker([&] {
    EXPECT_TRUE(sibling_->dispatch([&] {
      inside.set();
      EXPECT_TRUE(go_on.wait(rig::hang_guard));
    }));
  });
  EXPECT_TRUE(inside.wait(rig::hang_guard));
  EXPECT_TRUE(sibling_->submit([] {}));  // now the loop waits
  for (int i = 0; i < 20; ++i) {
    const auto signalled = std::make_shared<util::Event>();
    EXPECT_EQ(engine_->notify([signalled] { signalled->set(); }, UserCode::loss_signal), Notified::accepted);
    EXPECT_TRUE(signalled->wait(rig::hang_guard));
  }
  go_on.set();
  blocker.join();
}

TEST_F(ThreadEngineSiblingsTest, ATaskOfOneMustNotBlockOnAnother) {
  const auto stranger = start();
  int checked = 0;
  const auto check = [&] {
    EXPECT_TRUE(engine_->must_not_block());
    EXPECT_TRUE(sibling_->must_not_block());
    EXPECT_FALSE(stranger->must_not_block());
    ++checked;
  };
  EXPECT_TRUE(engine_->dispatch(check, IfBusy::wait_for_turn));
  EXPECT_TRUE(sibling_->dispatch(check, IfBusy::wait_for_turn));
  EXPECT_EQ(checked, 2);
  EXPECT_FALSE(sibling_->must_not_block());
  stranger->stop();
}

TEST_F(ThreadEngineSiblingsTest, ATaskOfOneDispatchesToAnotherThatIsIdleInTheCall) {
  bool nested = false;
  while (!nested) {  // one whose thread has just been busy does not run a task inline
    std::atomic<bool> over = false;
    util::Event ran;
    EXPECT_TRUE(engine_->dispatch([&] {
      EXPECT_TRUE(sibling_->dispatch(
          [&] {
            nested = !over;
            ran.set();
          },
          IfBusy::wait_for_turn));
      over = true;
    }));
    ASSERT_TRUE(ran.wait(rig::hang_guard));
  }
}

TEST_F(ThreadEngineSiblingsTest, StopRunsAllThatSiblingsAcceptedAndThenTheyRefuse) {
  std::atomic<int> ran = 0;
  const auto count = [&] { ++ran; };
  {
    const test::BlockedEngine blocked(*sibling_);  // and with it the thread of all
    for (int i = 0; i < 1000; ++i) {
      EXPECT_TRUE(sibling_->submit(count));
      EXPECT_TRUE(sibling_->dispatch(count));
      EXPECT_TRUE(notify(*sibling_, count));
    }
  }
  engine_->stop();
  EXPECT_EQ(ran, 3000);
  EXPECT_FALSE(sibling_->submit([] { FAIL(); }));
  EXPECT_FALSE(sibling_->dispatch([] { FAIL(); }));
  EXPECT_FALSE(sibling_->dispatch([] { FAIL(); }, IfBusy::wait_for_turn));
  EXPECT_FALSE(notify(*sibling_, [] { FAIL(); }));
  sibling_->post([] { FAIL(); });
  engine_.reset();
  clock_->advance(1h);
  EXPECT_FALSE(sibling_->submit([] { FAIL(); })) << "also when it is all that is left";
}

TEST_F(ThreadEngineSiblingsTest, OneThatIsMadeAfterTheStopRefuses) {
  engine_->stop();
  for (const auto& late : {engine_->sibling(), sibling_->sibling()}) {
    EXPECT_FALSE(late->submit([] { FAIL(); }));
    EXPECT_FALSE(late->dispatch([] { FAIL(); }));
  }
  engine_.reset();
  const auto later = sibling_->sibling();
  EXPECT_FALSE(later->submit([] { FAIL(); }));
}

TEST_F(ThreadEngineSiblingsTest, ASiblingOfASiblingIsStoppedWithThem) {
  const auto of_sibling = sibling_->sibling();
  std::atomic<bool> ran = false;
  EXPECT_TRUE(of_sibling->submit([&] { ran = true; }));
  engine_->stop();
  EXPECT_TRUE(ran);
  EXPECT_FALSE(of_sibling->submit([] { FAIL(); }));
  engine_.reset();
}

TEST_F(ThreadEngineSiblingsTest, WhatASiblingAcceptsRunsAlsoWhenItIsMadeDuringTheStop) {
  for (int round = 0; round < 100; ++round) {
    const auto engine = start();
    std::atomic<int> made = 0;
    std::atomic<int> accepted = 0;
    std::atomic<int> ran = 0;
    std::thread maker([&] {
      for (bool refused = false; !refused; ++made) {
        const auto sibling = made % 2 == 0 ? engine->sibling() : engine->sibling()->sibling();
        refused = !sibling->submit([&] { ++ran; });
        if (!refused) ++accepted;
      }
    });
    while (made < 1 + round % 5) std::this_thread::yield();
    engine->stop();
    maker.join();
    ASSERT_EQ(ran, accepted) << "round " << round;
  }
}

TEST_F(ThreadEngineSiblingsTest, ItsTimersRunByTheManualClock) {
  std::vector<int> ran;
  util::Event last;
  EXPECT_TRUE(sibling_->dispatch([&] {
    (void)sibling_->schedule(sibling_->now() + 2s, [&] {
      EXPECT_TRUE(sibling_->must_not_block());
      ran.push_back(2);
      last.set();
    });
    (void)sibling_->schedule(sibling_->now() + 1s, [&] { ran.push_back(1); });
    sibling_->cancel(sibling_->schedule(sibling_->now() + 1s, [] { FAIL(); }));
  }));
  clock_->advance(2s);
  ASSERT_TRUE(last.wait(rig::hang_guard));
  EXPECT_TRUE(sibling_->dispatch([&] { EXPECT_EQ(ran, (std::vector{1, 2})); }, IfBusy::wait_for_turn));
}

TEST_F(ThreadEngineSiblingsTest, ItsTimersRunByTheRealClock) {
  const std::shared_ptr<Engine> engine = ThreadEngine::start(boottime_clock(), [] { return std::uint64_t{4}; });
  const auto sibling = engine->sibling();
  const auto at = sibling->now() + 5ms;
  TimePoint ran_at;
  util::Event ran;
  EXPECT_TRUE(sibling->dispatch([&] {
    (void)sibling->schedule(at, [&] {
      ran_at = sibling->now();
      ran.set();
    });
    (void)sibling->schedule(at + 1h, [] { FAIL(); });
  }));
  ASSERT_TRUE(ran.wait(rig::hang_guard));
  EXPECT_GE(ran_at, at);
  engine->stop();
}

}  // namespace
}  // namespace dlock::engine

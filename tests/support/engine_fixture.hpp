// A thread engine on a manual clock, and ways to block it.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <thread>
#include <utility>

#include <dlock/clock.hpp>

#include "engine/thread_engine.hpp"
#include "torture/rig/hang_guard.hpp"
#include "util/event.hpp"

namespace dlock::test {

// Keeps an engine busy until it is unblocked or destroyed: inside a task on its own thread, inside a task on another
// thread, while its own has nothing to do, or inside user code, so that nothing runs on its thread.
class BlockedEngine {
 public:
  enum class By { task, task_of_another_thread, user_code };

  explicit BlockedEngine(engine::Engine& engine, By by = By::task) {
    Task block = [inside = inside_, go_on = go_on_] {
      inside->set();
      (void)go_on->wait();
    };
    if (by == By::task) {
      engine.post(std::move(block));
    } else if (by == By::user_code) {
      EXPECT_EQ(engine.notify(std::move(block), engine::UserCode::completion), engine::Notified::accepted);
    } else {
      thread_ = std::jthread([&engine, block = std::move(block)]() mutable {
        EXPECT_TRUE(engine.dispatch(std::move(block), engine::IfBusy::wait_for_turn));
      });
    }
    EXPECT_TRUE(inside_->wait(rig::hang_guard));
  }
  BlockedEngine(const BlockedEngine&) = delete;
  BlockedEngine& operator=(const BlockedEngine&) = delete;
  ~BlockedEngine() { unblock(); }
  void unblock() const { go_on_->set(); }

 private:
  std::shared_ptr<util::Event> inside_ = std::make_shared<util::Event>();
  std::shared_ptr<util::Event> go_on_ = std::make_shared<util::Event>();
  std::jthread thread_;
};

class EngineTest : public testing::Test {
 protected:
  // Through the interface: tests must not hold the engine's mutex.
  [[nodiscard]] std::shared_ptr<engine::Engine> start() const {
    return engine::ThreadEngine::start(clock_, [] { return std::uint64_t{4}; });
  }
  static bool notify(engine::Engine& engine, Task user_code) {
    return engine.notify(std::move(user_code), engine::UserCode::completion) == engine::Notified::accepted;
  }
  void TearDown() override {
    if (engine_) engine_->stop();
  }
  // Returns once everything that was queued before has run.
  void flush() {
    util::Event flushed;
    ASSERT_TRUE(engine_->submit([&] { flushed.set(); }));
    ASSERT_TRUE(flushed.wait(rig::hang_guard));
    // when the next task runs, set() has returned
    util::Event again;
    ASSERT_TRUE(engine_->submit([&] { again.set(); }));
    ASSERT_TRUE(again.wait(rig::hang_guard));
  }

  std::shared_ptr<ManualClock> clock_ = std::make_shared<ManualClock>();
  std::shared_ptr<engine::Engine> engine_ = start();
};

}  // namespace dlock::test

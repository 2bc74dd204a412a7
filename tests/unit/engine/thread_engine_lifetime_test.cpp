// Starting and stopping: nothing that was accepted is forgotten, nothing is left behind.
#include <dirent.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <atomic>
#include <chrono>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <dlock/clock.hpp>
#include <dlock/error.hpp>

#include "engine/thread_engine.hpp"
#include "tests/support/engine_fixture.hpp"

namespace dlock::engine {
namespace {

using namespace std::chrono_literals;

class ThreadEngineLifetimeTest : public test::EngineTest {
 protected:
  void stop() {
    engine_->stop();
    engine_.reset();
  }
};

std::size_t entries_of(const char* directory) {
  std::size_t count = 0;
  DIR* const dir = opendir(directory);
  while (readdir(dir) != nullptr) ++count;
  closedir(dir);
  return count;
}

TEST_F(ThreadEngineLifetimeTest, StopRunsWhatWasSubmitted) {
  std::atomic<int> ran = 0;
  {
    const test::BlockedEngine blocked(*engine_);
    for (int i = 0; i < 100; ++i) {
      engine_->post([&] { ++ran; });
      EXPECT_TRUE(engine_->dispatch([&] { ++ran; }));
      EXPECT_TRUE(notify(*engine_, [&] { ++ran; }));
    }
  }
  stop();
  EXPECT_EQ(ran, 300);
}

TEST_F(ThreadEngineLifetimeTest, AfterwardsEverythingIsRefused) {
  engine_->stop();
  EXPECT_FALSE(engine_->dispatch([] { FAIL(); }));
  EXPECT_FALSE(engine_->submit([] { FAIL(); }));
  EXPECT_FALSE(notify(*engine_, [] { FAIL(); }));
  engine_->post([] { FAIL(); });
  clock_->advance(1h);
  engine_.reset();
  clock_->advance(1h);
}

TEST_F(ThreadEngineLifetimeTest, StoppingOnTheEngineThreadEndsItByItself) {
  for (const bool inside_task : {true, false}) {
    auto engine = start();
    const std::weak_ptr<Engine> weak = engine;
    util::Event stopped;
    const auto stop = [&] {
      engine->stop();
      engine.reset();
      stopped.set();
    };
    ASSERT_TRUE(inside_task ? engine->submit(stop) : notify(*engine, stop));
    ASSERT_TRUE(stopped.wait(rig::hang_guard));
    while (!weak.expired()) std::this_thread::yield();
  }
}

TEST_F(ThreadEngineLifetimeTest, StoppingInsideATaskOfAnotherThreadDoesNotWait) {
  auto engine = start();
  const std::weak_ptr<Engine> weak = engine;
  EXPECT_TRUE(engine->dispatch([&] { engine->stop(); }));
  EXPECT_FALSE(engine->dispatch([] { FAIL(); }));
  engine.reset();
  while (!weak.expired()) std::this_thread::yield();
}

TEST_F(ThreadEngineLifetimeTest, TimersThatAreLeftDoNotRun) {
  EXPECT_TRUE(engine_->dispatch([&] { (void)engine_->schedule(engine_->now() + 1s, [] { FAIL(); }); }));
  engine_->stop();
  clock_->advance(1h);
}

TEST_F(ThreadEngineLifetimeTest, UserCodeOfATaskThatRunsDuringTheStopStillRunsOutsideTasks) {
  std::atomic<bool> ran = false;
  auto blocked = std::make_optional<test::BlockedEngine>(*engine_);
  EXPECT_TRUE(engine_->dispatch([&, engine = engine_.get()] {
    EXPECT_FALSE(engine->submit([] {})) << "the engine is stopping";
    EXPECT_TRUE(notify(*engine, [&, engine] {
      EXPECT_TRUE(engine->must_not_block());
      EXPECT_FALSE(engine->dispatch([] {}));
      ran = true;
    }));
  }));
  std::thread stopper([&] { engine_->stop(); });
  while (engine_->submit([] {})) std::this_thread::yield();
  blocked.reset();
  stopper.join();
  EXPECT_TRUE(ran);
  engine_.reset();
}

// Whatever was accepted runs, or a caller would wait for it forever.
TEST_F(ThreadEngineLifetimeTest, NothingThatWasAcceptedIsForgottenWhenStopRacesWithIt) {
  for (int round = 0; round < 200; ++round) {
    auto engine = start();
    std::atomic<int> accepted = 0;
    std::atomic<int> ran = 0;
    std::atomic<int> ready = 0;
    std::vector<std::thread> threads;
    for (int t = 0; t < 3; ++t) {
      threads.emplace_back([&, t, engine] {
        ++ready;
        for (int i = 0;; ++i) {
          bool ok = false;
          switch ((i + t) % 3) {
            case 0:
              ok = engine->submit([&] { ++ran; });
              break;
            case 1:
              ok = engine->dispatch([&] { ++ran; });
              break;
            default:
              ok = notify(*engine, [&] { ++ran; });
          }
          if (!ok) return;
          ++accepted;
        }
      });
    }
    while (ready < 3 || ran < round) std::this_thread::yield();
    engine->stop();
    for (auto& thread : threads) thread.join();
    ASSERT_EQ(ran, accepted) << "round " << round;
  }
}

TEST_F(ThreadEngineLifetimeTest, LeavesNoDescriptorAndNoThreadBehind) {
  stop();
  { start()->stop(); }
  const std::size_t descriptors = entries_of("/proc/self/fd");
  const std::size_t threads = entries_of("/proc/self/task");
  for (int i = 0; i < 200; ++i) start()->stop();
  EXPECT_EQ(entries_of("/proc/self/fd"), descriptors);
  // The kernel lists a thread that was joined for a moment longer.
  const auto end = std::chrono::steady_clock::now() + rig::hang_guard;
  while (entries_of("/proc/self/task") > threads && std::chrono::steady_clock::now() < end) std::this_thread::yield();
  EXPECT_LE(entries_of("/proc/self/task"), threads);
}

TEST_F(ThreadEngineLifetimeTest, WithoutDescriptorsItIsUnavailableAndLeavesNothing) {
  stop();
  { start()->stop(); }
  const std::size_t before = entries_of("/proc/self/fd");
  rlimit old{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &old), 0);
  int failures = 0;
  for (rlim_t descriptors = 3; descriptors < 12; ++descriptors) {  // beyond standard input, output and error
    rlimit tight = old;
    tight.rlim_cur = descriptors;
    ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &tight), 0);
    std::shared_ptr<Engine> engine;
    std::exception_ptr thrown;
    try {
      engine = start();
    } catch (...) {
      thrown = std::current_exception();  // looked at below: a sanitizer needs descriptors to look at an object
    }
    ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &old), 0);
    if (thrown) {
      ++failures;
      try {
        std::rethrow_exception(thrown);
      } catch (const Error& e) {
        EXPECT_EQ(e.code(), errc::unavailable);
        EXPECT_FALSE(e.detail().empty());
      } catch (const std::exception& e) {
        ADD_FAILURE() << "not an Error: " << e.what();
      }
    }
    if (engine) engine->stop();
    engine.reset();
    EXPECT_EQ(entries_of("/proc/self/fd"), before);
  }
  EXPECT_GT(failures, 0);
}

TEST_F(ThreadEngineLifetimeTest, AClockThatMovesWhileEnginesComeAndGoIsFine) {
  std::atomic<bool> done = false;
  std::thread mover([&] {
    while (!done) clock_->advance(1ms);
  });
  for (int i = 0; i < 50; ++i) {
    const auto engine = start();
    util::Event ran;
    EXPECT_TRUE(engine->dispatch([&] { (void)engine->schedule(engine->now() + 5ms, [&] { ran.set(); }); }));
    EXPECT_TRUE(ran.wait(rig::hang_guard));
    engine->stop();
  }
  done = true;
  mover.join();
}

}  // namespace
}  // namespace dlock::engine

// Starting and stopping: nothing that was accepted is forgotten, nothing is left behind. Readiness of descriptors.
#include <dirent.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <exception>
#include <functional>
#include <memory>
#include <system_error>
#include <thread>

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

TEST_F(ThreadEngineLifetimeTest, AfterStop_NothingRunsAndAllIsRefused) {
  EXPECT_TRUE(engine_->dispatch([&] { (void)engine_->schedule(engine_->now() + 1s, [] { FAIL(); }); }));
  engine_->stop();
  EXPECT_FALSE(engine_->dispatch([] { FAIL(); }));
  EXPECT_FALSE(engine_->submit([] { FAIL(); }));
  EXPECT_FALSE(notify(*engine_, [] { FAIL(); }));
  engine_->post([] { FAIL(); });
  clock_->advance(1h);
  engine_.reset();
  clock_->advance(1h);
}

TEST_F(ThreadEngineLifetimeTest, StartWithoutDescriptors_IsUnavailable) {
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

// --- Descriptors -----------------------------------------------------------------------------------------------------

using Interest = Descriptor::Interest;

class DescriptorTest : public test::EngineTest {
 protected:
  void SetUp() override {
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends_.data()), 0);
    watch();
  }
  void TearDown() override {
    unwatch();
    EngineTest::TearDown();
    for (const int fd : ends_) {
      if (fd < 0) continue;
      EXPECT_EQ(close(fd), 0) << "the descriptor is the test's own, and still open";
    }
  }
  void watch() {
    EXPECT_TRUE(engine_->dispatch([&] { descriptor_ = engine_->watch(ends_[0]); }));
  }
  void unwatch() {
    EXPECT_TRUE(engine_->dispatch([&] { descriptor_.reset(); }));
  }
  void wait_for(Interest interest, const std::function<void(std::error_code)>& handler) {
    EXPECT_TRUE(engine_->dispatch([this, interest, handler] { descriptor_->async_wait(interest, handler); }));
  }
  void send() { ASSERT_EQ(write(ends_[1], "x", 1), 1); }

  std::array<int, 2> ends_{-1, -1};
  std::unique_ptr<Descriptor> descriptor_;
};

TEST_F(DescriptorTest, Readiness_IsReportedOnceForEachWait) {
  util::Event writable;
  std::atomic<int> calls = 0;
  for (int i = 0; i < 4; ++i) {
    util::Event readable;
    wait_for(Interest::readable, [&](std::error_code ec) {
      EXPECT_FALSE(ec);
      EXPECT_TRUE(engine_->must_not_block());
      ++calls;
      readable.set();
    });
    if (i == 0) {
      wait_for(Interest::writable, [&](std::error_code) { writable.set(); });
      EXPECT_TRUE(writable.wait(rig::hang_guard)) << "both may be waited for";
      flush();
      EXPECT_EQ(calls, 0);
      send();
    }
    ASSERT_TRUE(readable.wait(rig::hang_guard));
    flush();
    EXPECT_EQ(calls, i + 1) << "level-triggered for a new wait, silent without one";
  }
}

TEST_F(DescriptorTest, CloseOfTheOtherEnd_IsReadiness) {
  util::Event ready;
  wait_for(Interest::readable, [&](std::error_code) {
    descriptor_.reset();
    ready.set();
  });
  close(ends_[1]);
  ends_[1] = -1;
  EXPECT_TRUE(ready.wait(rig::hang_guard));
  EXPECT_GE(fcntl(ends_[0], F_GETFD), 0) << "the end of a watch does not close";
  EXPECT_TRUE(engine_->dispatch([&] {
    try {
      (void)engine_->watch(-1);
      ADD_FAILURE();
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), errc::unavailable);
    }
  }));
}

TEST_F(DescriptorTest, EndOfTheWatch_DropsThePendingHandler) {
  for (int round = 0; round < 100; ++round) {
    unwatch();
    watch();
    const auto ran = std::make_shared<bool>(false);
    wait_for(Interest::readable, [ran](std::error_code) { *ran = true; });
    bool ran_before = false;
    if (round % 2 == 0) send();  // the readiness races with the destruction
    EXPECT_TRUE(engine_->dispatch([&] {
      ran_before = *ran;
      descriptor_.reset();
    }));
    flush();
    EXPECT_EQ(*ran, ran_before);
    char byte = 0;
    while (read(ends_[0], &byte, 1) == 1) {
    }
  }
  watch();
  wait_for(Interest::readable, [](std::error_code) { FAIL(); });
  unwatch();
  engine_->stop();
  engine_ = start();
}

}  // namespace
}  // namespace dlock::engine

// Readiness of descriptors.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <memory>
#include <system_error>

#include <dlock/error.hpp>

#include "engine/thread_engine.hpp"
#include "tests/support/engine_fixture.hpp"

namespace dlock::engine {
namespace {

using Interest = Descriptor::Interest;

class ThreadEngineDescriptorTest : public test::EngineTest {
 protected:
  void SetUp() override {
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends_.data()), 0);
  }
  void TearDown() override {
    EXPECT_TRUE(engine_->dispatch([&] { descriptor_.reset(); }));
    EngineTest::TearDown();
    for (const int fd : ends_) {
      if (fd < 0) continue;
      EXPECT_EQ(close(fd), 0) << "the descriptor is the test's own, and still open";
    }
  }
  void watch() {
    EXPECT_TRUE(engine_->dispatch([&] { descriptor_ = engine_->watch(ends_[0]); }));
  }
  void send() { ASSERT_EQ(write(ends_[1], "x", 1), 1); }

  std::array<int, 2> ends_{-1, -1};
  std::unique_ptr<Descriptor> descriptor_;
};

TEST_F(ThreadEngineDescriptorTest, TellsWhenThereIsSomethingToRead) {
  watch();
  util::Event ready;
  EXPECT_TRUE(engine_->dispatch([&] {
    descriptor_->async_wait(Interest::readable, [&](std::error_code ec) {
      EXPECT_FALSE(ec);
      EXPECT_TRUE(engine_->must_not_block());
      ready.set();
    });
  }));
  flush();
  EXPECT_FALSE(ready.is_set());
  send();
  EXPECT_TRUE(ready.wait(rig::hang_guard));
}

TEST_F(ThreadEngineDescriptorTest, TellsOnceForEachWait) {
  watch();
  int calls = 0;
  send();
  for (int i = 1; i <= 3; ++i) {
    util::Event ready;
    EXPECT_TRUE(engine_->dispatch([&] {
      descriptor_->async_wait(Interest::readable, [&](std::error_code) {
        ++calls;
        ready.set();
      });
    }));
    ASSERT_TRUE(ready.wait(rig::hang_guard));
    flush();
    EXPECT_EQ(calls, i) << "level-triggered for a new wait, silent without one";
  }
}

TEST_F(ThreadEngineDescriptorTest, BothInterestsMayBePending) {
  watch();
  util::Event writable;
  util::Event readable;
  EXPECT_TRUE(engine_->dispatch([&] {
    descriptor_->async_wait(Interest::readable, [&](std::error_code) { readable.set(); });
    descriptor_->async_wait(Interest::writable, [&](std::error_code) { writable.set(); });
  }));
  EXPECT_TRUE(writable.wait(rig::hang_guard));
  EXPECT_FALSE(readable.is_set());
  send();
  EXPECT_TRUE(readable.wait(rig::hang_guard));
}

TEST_F(ThreadEngineDescriptorTest, TheOtherEndsCloseIsReadiness) {
  watch();
  util::Event ready;
  EXPECT_TRUE(
      engine_->dispatch([&] { descriptor_->async_wait(Interest::readable, [&](std::error_code) { ready.set(); }); }));
  close(ends_[1]);
  ends_[1] = -1;
  EXPECT_TRUE(ready.wait(rig::hang_guard));
}

TEST_F(ThreadEngineDescriptorTest, AHandlerThatIsPendingWhenTheWatchGoesNeverRuns) {
  for (int round = 0; round < 100; ++round) {
    watch();
    const auto ran = std::make_shared<bool>(false);
    EXPECT_TRUE(engine_->dispatch(
        [&] { descriptor_->async_wait(Interest::readable, [ran](std::error_code) { *ran = true; }); }));
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
}

TEST_F(ThreadEngineDescriptorTest, AHandlerMayDestroyItsOwnWatch) {
  watch();
  util::Event done;
  send();
  EXPECT_TRUE(engine_->dispatch([&] {
    descriptor_->async_wait(Interest::readable, [&](std::error_code) {
      descriptor_.reset();
      done.set();
    });
  }));
  EXPECT_TRUE(done.wait(rig::hang_guard));
}

TEST_F(ThreadEngineDescriptorTest, AWatchedDescriptorIsNotClosed) {
  watch();
  EXPECT_TRUE(engine_->dispatch([&] { descriptor_.reset(); }));
  flush();
  EXPECT_GE(fcntl(ends_[0], F_GETFD), 0);
  watch();
}

TEST_F(ThreadEngineDescriptorTest, WhatCannotBeWatchedIsUnavailable) {
  EXPECT_TRUE(engine_->dispatch([&] {
    try {
      (void)engine_->watch(-1);
      ADD_FAILURE();
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), errc::unavailable);
    }
  }));
}

TEST_F(ThreadEngineDescriptorTest, AnEngineStopsThoughAWatchIsPending) {
  watch();
  EXPECT_TRUE(engine_->dispatch([&] { descriptor_->async_wait(Interest::readable, [](std::error_code) { FAIL(); }); }));
  EXPECT_TRUE(engine_->dispatch([&] { descriptor_.reset(); }));
  engine_->stop();
  engine_ = start();
}

}  // namespace
}  // namespace dlock::engine

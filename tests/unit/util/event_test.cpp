#include "util/event.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <thread>
#include <vector>

namespace dlock::util {
namespace {

using namespace std::chrono_literals;

TEST(Event, IsSetOnceAndStaysSet) {
  Event event;
  EXPECT_FALSE(event.is_set());
  event.set();
  EXPECT_TRUE(event.is_set());
  event.set();
  EXPECT_TRUE(event.is_set());
  EXPECT_TRUE(event.wait());
  EXPECT_TRUE(event.wait(0ns));
  EXPECT_TRUE(event.wait(-1s));
}

TEST(Event, AWaitWithALimitEnds) {
  Event event;
  EXPECT_FALSE(event.wait(0ns));
  EXPECT_FALSE(event.wait(-5s));
  EXPECT_FALSE(event.wait(std::chrono::nanoseconds::min()));
  const auto start = std::chrono::steady_clock::now();
  EXPECT_FALSE(event.wait(5ms));
  EXPECT_GE(std::chrono::steady_clock::now() - start, 5ms);
}

TEST(Event, MayBeSetAfterAWaitThatEndedEarly) {
  Event event;
  EXPECT_FALSE(event.wait(1ms));
  event.set();
  EXPECT_TRUE(event.wait());
}

TEST(Event, WakesTheWaiter) {
  Event event;
  std::atomic<bool> woken = false;
  std::thread waiter([&] {
    EXPECT_TRUE(event.wait());
    woken = true;
  });
  event.set();
  waiter.join();
  EXPECT_TRUE(woken);
}

TEST(Event, ALimitBeyondTheEndOfTimeIsNone) {
  Event event;
  std::thread waiter([&] { EXPECT_TRUE(event.wait(std::chrono::nanoseconds::max())); });
  event.set();
  waiter.join();
}

// Under TSan this also shows that what was written before set() is visible after wait().
TEST(Event, NeverLosesAWakeUpAndPublishesWhatWasWritten) {
  struct Slot {
    Event event;
    int payload = 0;
  };
  for (int round = 0; round < 3000; ++round) {
    const auto slot = std::make_shared<Slot>();
    std::thread setter([slot] {
      slot->payload = 42;
      slot->event.set();
    });
    if (round % 3 == 0) std::this_thread::yield();
    if (round % 2 == 0) {
      ASSERT_TRUE(slot->event.wait());
    } else {
      while (!slot->event.wait(50us)) {
      }
    }
    ASSERT_EQ(slot->payload, 42);
    setter.join();
  }
}

}  // namespace
}  // namespace dlock::util

#include "engine/turn_mutex.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "torture/rig/hang_guard.hpp"
#include "util/event.hpp"

namespace dlock::engine {
namespace {

using std::chrono::microseconds;

// Whether it is free. Clang's analysis does not follow conditional holding.
bool is_free(TurnMutex& mutex) DLOCK_NO_THREAD_SAFETY_ANALYSIS {
  if (!mutex.try_lock()) return false;
  mutex.unlock();
  return true;
}

TEST(TurnMutex, IsHeldByOneAtATime) {
  TurnMutex mutex;
  EXPECT_TRUE(is_free(mutex));
  mutex.lock();
  EXPECT_FALSE(is_free(mutex));
  mutex.unlock();
  mutex.lock_first();
  EXPECT_FALSE(is_free(mutex));
  mutex.unlock();
  EXPECT_TRUE(is_free(mutex));
}

// Each way in, by more threads than there are processors. A wake-up that is lost hangs this; under TSan it also shows
// that each holder sees what the one before it did.
TEST(TurnMutex, NobodyIsForgottenWhoeverComesAndGoes) {
  constexpr int threads = 8;
  constexpr int rounds = 4000;
  TurnMutex mutex;
  int counter = 0;
  std::atomic<int> refused = 0;
  std::vector<std::thread> running;
  for (int t = 0; t < threads; ++t) {
    running.emplace_back([&, t]() DLOCK_NO_THREAD_SAFETY_ANALYSIS {
      for (int i = 0; i < rounds; ++i) {
        if (t == 0) {
          mutex.lock_first();
        } else if ((t == 1 && !mutex.try_lock()) || (t == 2 && !mutex.lock_first_for(microseconds(i % 50)))) {
          ++refused;
          continue;
        } else if (t > 2) {
          mutex.lock();
        }
        ++counter;
        if (i % 64 == t) std::this_thread::yield();  // then others come while it is held
        mutex.unlock();
      }
    });
  }
  for (auto& thread : running) thread.join();
  EXPECT_EQ(counter, threads * rounds - refused);
}

TEST(TurnMutex, WhoGoesFirstGoesBeforeThoseThatSleepOrTry) {
  TurnMutex mutex;
  std::vector<int> order;
  mutex.lock();
  std::vector<std::thread> sleepers;
  for (int i = 0; i < 3; ++i) {
    sleepers.emplace_back([&] {
      mutex.lock();
      order.push_back(2);
      mutex.unlock();
    });
  }
  util::Event first_is_in;
  std::thread first([&] {
    mutex.lock_first();
    EXPECT_FALSE(is_free(mutex));
    order.push_back(1);
    first_is_in.set();
    mutex.unlock();
  });
  while (!mutex.somebody_goes_first()) std::this_thread::yield();
  mutex.unlock();
  ASSERT_TRUE(first_is_in.wait(rig::hang_guard));
  first.join();
  for (auto& sleeper : sleepers) sleeper.join();
  EXPECT_EQ(order, (std::vector{1, 2, 2, 2}));
}

TEST(TurnMutex, WhoGivesUpGoingFirstIsNotWaitedFor) {
  TurnMutex mutex;
  mutex.lock();
  std::thread first([&]() DLOCK_NO_THREAD_SAFETY_ANALYSIS { EXPECT_FALSE(mutex.lock_first_for(microseconds(100))); });
  first.join();
  EXPECT_FALSE(mutex.somebody_goes_first());
  mutex.unlock();
  EXPECT_TRUE(is_free(mutex));
}

TEST(TurnMutex, WhoHasJustUnlockedDoesNotOvertakeWhoGoesFirst) {
  for (int round = 0; round < 100; ++round) {
    TurnMutex mutex;
    mutex.lock();
    std::atomic<bool> first_was_in = false;
    std::thread first([&] {
      mutex.lock_first();
      first_was_in = true;
      mutex.unlock();
    });
    while (!mutex.somebody_goes_first()) std::this_thread::yield();
    mutex.unlock();
    if (mutex.try_lock()) {
      EXPECT_TRUE(first_was_in);
      mutex.unlock();
    }
    first.join();
  }
}

}  // namespace
}  // namespace dlock::engine

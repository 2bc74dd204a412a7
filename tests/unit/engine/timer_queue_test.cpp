#include "engine/timer_queue.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <optional>
#include <vector>

namespace dlock::engine {
namespace {

using namespace std::chrono_literals;

constexpr TimePoint kNow{std::chrono::hours(1)};

class TimerQueueTest : public testing::Test {
 protected:
  TimerQueue::Id add(TimePoint at, int tag) {
    return queue_.add(at, [this, tag] { ran_.push_back(tag); });
  }
  std::vector<int> run_due(TimePoint now) {
    ran_.clear();
    while (const auto task = queue_.pop_due(now)) (*task)();
    return ran_;
  }
  TimerQueue queue_;
  std::vector<int> ran_;
};

TEST_F(TimerQueueTest, RunsInTheOrderOfDeadlines) {
  add(kNow + 3s, 3);
  add(kNow + 1s, 1);
  add(kNow + 2s, 2);
  EXPECT_EQ(queue_.next(), kNow + 1s);
  EXPECT_TRUE(run_due(kNow).empty());
  EXPECT_EQ(run_due(kNow + 2s), (std::vector{1, 2}));
  EXPECT_EQ(queue_.next(), kNow + 3s);
  EXPECT_EQ(run_due(kNow + 1h), (std::vector{3}));
  EXPECT_EQ(queue_.next(), std::nullopt);
}

TEST_F(TimerQueueTest, EqualDeadlinesRunInTheOrderTheyWereAdded) {
  for (int i = 0; i < 5; ++i) add(kNow, i);
  EXPECT_EQ(run_due(kNow), (std::vector{0, 1, 2, 3, 4}));
}

TEST_F(TimerQueueTest, ACancelledTimerDoesNotRun) {
  const auto first = add(kNow, 1);
  add(kNow, 2);
  queue_.cancel(first);
  queue_.cancel(first);
  EXPECT_EQ(queue_.size(), 1U);
  EXPECT_EQ(run_due(kNow), (std::vector{2}));
}

TEST_F(TimerQueueTest, IdsAreNeverZeroNorReused) {
  const auto first = add(kNow, 1);
  EXPECT_NE(first, 0U);
  (void)run_due(kNow);
  const auto second = add(kNow, 2);
  EXPECT_NE(second, first);
  queue_.cancel(first);
  queue_.cancel(0);
  EXPECT_EQ(run_due(kNow), (std::vector{2}));
}

TEST_F(TimerQueueTest, StandsTheEndsOfTime) {
  add(TimePoint::max(), 2);
  add(TimePoint::min(), 1);
  EXPECT_EQ(run_due(kNow), (std::vector{1}));
  EXPECT_EQ(queue_.next(), TimePoint::max());
  EXPECT_EQ(run_due(TimePoint::max()), (std::vector{2}));
}

}  // namespace
}  // namespace dlock::engine

#include "engine/timer_queue.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <map>
#include <optional>
#include <vector>

#include "torture/dice.hpp"

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

TEST_F(TimerQueueTest, WhatATimerHoldsGoesWhenItIsCancelled) {
  const auto held = std::make_shared<int>(1);
  const auto id = queue_.add(kNow, [held] {});
  EXPECT_EQ(held.use_count(), 2);
  queue_.cancel(id);
  EXPECT_EQ(held.use_count(), 1);
}

// Against a container of the standard library, by a seed.
TEST_F(TimerQueueTest, DoesWhatASortedListWouldDo) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(seed);
    torture::Dice dice(seed);
    TimerQueue queue;
    std::multimap<TimePoint, int> expected;  // equal keys in the order they were added
    std::map<int, std::pair<TimerQueue::Id, std::multimap<TimePoint, int>::iterator>> armed;
    std::vector<TimerQueue::Id> over;
    std::vector<int> ran;
    TimePoint now = kNow;
    const std::uint64_t crowd = 1 + dice.below(200);
    for (int i = 0; i < 3000; ++i) {
      const auto what = dice.below(10);
      if (what < 5 && armed.size() < crowd) {
        const auto at = now + std::chrono::nanoseconds(dice.below(20));
        const auto id = queue.add(at, [&ran, i] { ran.push_back(i); });
        armed[i] = {id, expected.emplace(at, i)};
      } else if (what < 7 && !armed.empty()) {
        const auto found = std::next(armed.begin(), static_cast<std::ptrdiff_t>(dice.below(armed.size())));
        queue.cancel(found->second.first);
        over.push_back(found->second.first);
        expected.erase(found->second.second);
        armed.erase(found);
      } else if (what < 8 && !over.empty()) {
        queue.cancel(dice.pick(over));
      } else {
        now += std::chrono::nanoseconds(dice.below(5));
        ran.clear();
        std::vector<int> due;
        for (auto left = dice.below(10); left > 0; --left) {
          if (const auto task = queue.pop_due(now)) (*task)();
          if (expected.empty() || expected.begin()->first > now) continue;
          due.push_back(expected.begin()->second);
          over.push_back(armed.at(due.back()).first);
          armed.erase(due.back());
          expected.erase(expected.begin());
        }
        ASSERT_EQ(ran, due);
      }
      ASSERT_EQ(queue.size(), expected.size());
      ASSERT_EQ(queue.next(), expected.empty() ? std::nullopt : std::optional(expected.begin()->first));
    }
  }
}

}  // namespace
}  // namespace dlock::engine

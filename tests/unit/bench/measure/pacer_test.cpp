#include "bench/measure/pacer.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <set>
#include <stdexcept>

namespace dlock::bench {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class ManualTimeline final : public Timeline {
 public:
  Clock::time_point now() override { return now_; }
  void sleep_until(Clock::time_point time) override {
    sleeps.push_back(time - now_);
    now_ = std::max(now_, time);
    if (after_sleep) after_sleep();
  }
  void advance(Clock::duration time) { now_ += time; }

  std::vector<Clock::duration> sleeps;
  std::function<void()> after_sleep;

 private:
  Clock::time_point now_{seconds(1000)};
};

class PacerTest : public testing::Test {
 protected:
  ManualTimeline timeline_;
  std::stop_source stop_;
};

TEST_F(PacerTest, CallsAreDueAtTheRateWithTheSameGapsForTheSameSeedAndCountFromThen) {
  constexpr int calls = 20'000;
  ManualTimeline other_timeline;
  Pacer pacer(timeline_, 200, 42);
  Pacer same(other_timeline, 200, 42);
  const auto start = timeline_.now();
  std::set<Clock::duration> gaps;
  for (int i = 0; i < calls; ++i) {
    const auto before = timeline_.now();
    ASSERT_TRUE(pacer.await_next({}));
    ASSERT_TRUE(same.await_next({}));
    ASSERT_EQ(timeline_.now(), other_timeline.now());
    ASSERT_EQ(pacer.finish(), Clock::duration(0));
    ASSERT_EQ(same.finish(), Clock::duration(0));
    gaps.insert(timeline_.now() - before);
  }
  EXPECT_NEAR(std::chrono::duration<double>(timeline_.now() - start).count(), calls / 200.0, 2);
  EXPECT_GT(gaps.size(), 1000U);
}

TEST_F(PacerTest, ALateCallCountsFromWhenItShouldHaveStarted) {
  Pacer pacer(timeline_, 1000, 1);
  ASSERT_TRUE(pacer.await_next({}));
  timeline_.advance(seconds(1));  // a slow call: hundreds of others should have started meanwhile
  EXPECT_EQ(pacer.finish(), seconds(1));
  timeline_.sleeps.clear();
  Clock::duration last = seconds(1);
  for (int i = 0; i < 500; ++i) {
    ASSERT_TRUE(pacer.await_next({}));
    const Clock::duration taken = pacer.finish();  // it takes no time itself
    ASSERT_LT(taken, last);
    ASSERT_GT(taken, Clock::duration(0));
    last = taken;
  }
  EXPECT_TRUE(timeline_.sleeps.empty()) << "a late caller does not sleep";
  EXPECT_LT(last, milliseconds(700));
}

TEST_F(PacerTest, AStopEndsALongSleepAndNoCallBeginsAfterIt) {
  Pacer pacer(timeline_, 0.0001, 1);
  timeline_.after_sleep = [this] {
    if (timeline_.sleeps.size() == 3) stop_.request_stop();
  };
  EXPECT_FALSE(pacer.await_next(stop_.get_token()));
  ASSERT_EQ(timeline_.sleeps.size(), 3U);
  for (const auto each : timeline_.sleeps) EXPECT_LE(each, milliseconds(100));
  timeline_.advance(std::chrono::hours(100));
  EXPECT_FALSE(pacer.await_next(stop_.get_token())) << "although it is due";
}

TEST_F(PacerTest, CallsThatNeverBeganCountForAsLongAsTheyHaveBeenDue) {
  Pacer pacer(timeline_, 100, 1);
  const auto start = timeline_.now();
  ASSERT_TRUE(pacer.await_next({}));
  EXPECT_TRUE(pacer.give_up(start).empty()) << "none was due then";
  const auto due = timeline_.now();
  timeline_.advance(seconds(10));  // it has not ended yet
  const auto waiting = pacer.give_up(start + seconds(10));
  ASSERT_FALSE(waiting.empty());
  EXPECT_EQ(waiting.front(), start + seconds(10) - due);
  EXPECT_NEAR(static_cast<double>(waiting.size()), 1000, 100);
  const double sum = std::accumulate(waiting.begin(), waiting.end(), 0.0, [](double so_far, Clock::duration each) {
    return so_far + std::chrono::duration<double>(each).count();
  });
  EXPECT_NEAR(sum / static_cast<double>(waiting.size()), 5, 0.5);
}

TEST_F(PacerTest, RefusesARateThatIsNone) {
  for (const double rate : {0.0, -1.0, 1e9, std::nan(""), std::numeric_limits<double>::infinity()}) {
    EXPECT_THROW(Pacer(timeline_, rate, 1), std::invalid_argument) << rate;
  }
}

}  // namespace
}  // namespace dlock::bench

// Samples, statistics, and callers at a rate.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <utility>
#include <vector>

#include "bench/measure/pacer.hpp"
#include "bench/measure/samples.hpp"
#include "bench/measure/statistics.hpp"

namespace dlock::bench {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;

TEST(StatisticsTest, MedianAndFairness_AreThoseOfTheTable) {
  EXPECT_EQ(median({3, 1, 2}), 2);
  EXPECT_EQ(median({4, 1, 3, 2}), 2.5);
  EXPECT_EQ(median({}), 0);
  // Jain's index relative to the most even division: that of a queue is 1, however few turns there were.
  const std::pair<std::vector<std::uint64_t>, double> rows[] = {
      {{5, 5, 5, 5}, 1}, {{1, 0, 1, 0}, 1},      {{3, 2, 3, 2, 2}, 1}, {{0, 0, 0}, 1},
      {{}, 1},           {{2, 4, 6}, 36.0 / 42}, {{2, 0, 0, 0}, 0.5},  {{9, 0, 0, 0}, 0.25 / (81.0 / 84)}};
  for (const auto& [turns, expected] : rows) {
    EXPECT_DOUBLE_EQ(fairness_of_turns(turns), expected) << testing::PrintToString(turns);
  }
}

// 1 us to `count` us, in an order that is not sorted.
Samples one_to(int count) {
  Samples samples;
  for (int i = 0; i < count; ++i) samples.add(microseconds(i % 2 == 0 ? count - i / 2 : 1 + i / 2));
  return samples;
}

TEST(SamplesTest, Percentile_IsTheSampleOfTheNearestRank) {
  Samples samples = one_to(1000);
  for (const auto& [share, expected] :
       {std::pair{0.0, 1}, {0.5, 500}, {0.99, 990}, {0.999, 999}, {0.9991, 1000}, {1, 1000}}) {
    EXPECT_DOUBLE_EQ(samples.percentile(share), expected) << share;
  }
  // A rank that is whole is not rounded up.
  for (int percent = 1; percent <= 100; ++percent) EXPECT_DOUBLE_EQ(one_to(100).percentile(percent / 100.0), percent);
  EXPECT_DOUBLE_EQ(Samples().percentile(0.5), 0);
  samples.add(microseconds(2000));
  EXPECT_DOUBLE_EQ(samples.longest(), 2000) << "added after a percentile was asked for";
}

TEST(SamplesTest, Cdf_IsExactAndDenseAtTheSlowEnd) {
  constexpr int count = 100'000;
  const auto points = one_to(count).cdf(100);
  ASSERT_LE(points.size(), 100U);
  for (const CdfPoint& point : points) EXPECT_DOUBLE_EQ(point.share, point.microseconds / count);
  EXPECT_DOUBLE_EQ(points.front().microseconds, 1);
  EXPECT_DOUBLE_EQ(points.back().share, 1);
  EXPECT_GT(std::count_if(points.begin(), points.end(), [](const CdfPoint& each) { return each.share > 0.999; }), 20);
  EXPECT_EQ(one_to(4).cdf(10).size(), 4U);
  EXPECT_TRUE(Samples().cdf(10).empty());
}

class ManualTimeline final : public Timeline {
 public:
  Clock::time_point now() override { return now_; }
  void sleep_until(Clock::time_point time) override { now_ = std::max(now_, time); }
  void advance(Clock::duration time) { now_ += time; }

 private:
  Clock::time_point now_{seconds(1000)};
};

TEST(PacerTest, LateCall_CountsFromWhenItWasDue) {
  ManualTimeline timeline;
  Pacer pacer(timeline, 200, 42);
  const auto start = timeline.now();
  constexpr int calls = 20'000;
  for (int i = 0; i < calls; ++i) {
    ASSERT_TRUE(pacer.await_next({}));
    ASSERT_EQ(pacer.finish(), Clock::duration(0));
  }
  EXPECT_NEAR(std::chrono::duration<double>(timeline.now() - start).count(), calls / 200.0, 2);
  ASSERT_TRUE(pacer.await_next({}));
  timeline.advance(seconds(1));  // a slow call: hundreds of others should have started meanwhile
  EXPECT_EQ(pacer.finish(), seconds(1));
  ASSERT_TRUE(pacer.await_next({})) << "without a sleep";
  const Clock::duration next = pacer.finish();  // it takes no time itself
  EXPECT_TRUE(next > milliseconds(500) && next < seconds(1));
}

}  // namespace
}  // namespace dlock::bench

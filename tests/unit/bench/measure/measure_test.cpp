// Samples, statistics, random numbers, the usage of the process; callers at a rate, and crowds of them.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <set>
#include <stdexcept>
#include <thread>
#include <vector>

#include "bench/measure/pacer.hpp"
#include "bench/measure/random.hpp"
#include "bench/measure/samples.hpp"
#include "bench/measure/statistics.hpp"
#include "bench/measure/usage.hpp"

namespace dlock::bench {
namespace {

TEST(MedianTest, EvenNumberOfValues_HasTheMeanOfTheMiddleOnes) {
  EXPECT_EQ(median({3, 1, 2}), 2);
  EXPECT_EQ(median({4, 1, 3, 2}), 2.5);
  EXPECT_EQ(median({}), 0);
}

TEST(FairnessTest, Turns_HaveJainsIndexRelativeToTheMostEvenDivision) {
  const struct {
    std::vector<std::uint64_t> turns;
    double expected;
  } rows[] = {
      {{5, 5, 5, 5}, 1},
      {{1, 0, 1, 0}, 1},  // a queue, however few turns there were
      {{3, 2, 3, 2, 2}, 1},
      {{0, 0, 0}, 1},
      {{}, 1},
      {{8, 0, 0, 0}, 0.25},
      {{2, 4, 6}, 36.0 / 42},
      {{2, 0, 0, 0}, 0.5},
      {{9, 0, 0, 0}, 0.25 / (81.0 / 84)},
  };
  for (const auto& row : rows)
    EXPECT_DOUBLE_EQ(fairness_of_turns(row.turns), row.expected) << testing::PrintToString(row.turns);
}

using std::chrono::microseconds;

Samples of(std::initializer_list<int> values) {
  Samples samples;
  for (const int each : values) samples.add(microseconds(each));
  return samples;
}

// 1 us to `count` us, in an order that is not sorted.
Samples one_to(int count) {
  Samples samples;
  for (int i = 0; i < count; ++i) samples.add(microseconds(i % 2 == 0 ? count - i / 2 : 1 + i / 2));
  return samples;
}

TEST(SamplesTest, Percentile_IsTheSampleOfTheNearestRank) {
  const struct {
    Samples samples;
    double share;
    double expected;
  } rows[] = {
      {one_to(1000), 0, 1},       {one_to(1000), 0.5, 500},
      {one_to(1000), 0.9, 900},   {one_to(1000), 0.99, 990},
      {one_to(1000), 0.999, 999}, {one_to(1000), 0.9991, 1000},
      {one_to(1000), 1, 1000},    {of({7}), 0, 7},
      {of({7}), 0.5, 7},          {of({7}), 1, 7},
      {of({}), 0.5, 0},           {of({2, 1}), 0.5, 1},
  };
  for (const auto& row : rows) {
    EXPECT_DOUBLE_EQ(row.samples.percentile(row.share), row.expected) << row.samples.count() << ", " << row.share;
  }
  // A rank that is whole is not rounded up.
  for (int percent = 1; percent <= 100; ++percent) EXPECT_DOUBLE_EQ(one_to(100).percentile(percent / 100.0), percent);
}

TEST(SamplesTest, SamplesAddedAfterAPercentile_Count) {
  Samples samples = one_to(10);
  EXPECT_DOUBLE_EQ(samples.longest(), 10);
  samples.add(microseconds(20));
  EXPECT_DOUBLE_EQ(samples.longest(), 20);
  samples.add(of({15}));
  EXPECT_EQ(samples.count(), 12U);
  EXPECT_DOUBLE_EQ(samples.percentile(11.0 / 12), 15);
}

TEST(SamplesTest, CdfOfFewSamples_HasEachValueOnce) {
  const auto points = of({3, 1, 3, 3}).cdf(10);
  ASSERT_EQ(points.size(), 2U);
  EXPECT_DOUBLE_EQ(points[0].microseconds, 1);
  EXPECT_DOUBLE_EQ(points[0].share, 0.25);
  EXPECT_DOUBLE_EQ(points[1].microseconds, 3);
  EXPECT_DOUBLE_EQ(points[1].share, 1);
  EXPECT_EQ(one_to(4).cdf(10).size(), 4U);
  EXPECT_TRUE(of({}).cdf(10).empty());
  ASSERT_EQ(one_to(5).cdf(1).size(), 1U);
  EXPECT_DOUBLE_EQ(one_to(5).cdf(1)[0].microseconds, 5);
}

TEST(SamplesTest, CdfOfManySamples_IsExactAndDenseAtTheSlowEnd) {
  constexpr int count = 100'000;
  const auto points = one_to(count).cdf(100);
  ASSERT_LE(points.size(), 100U);
  ASSERT_GT(points.size(), 80U);
  for (const CdfPoint& point : points) EXPECT_DOUBLE_EQ(point.share, point.microseconds / count);
  EXPECT_DOUBLE_EQ(points.front().microseconds, 1);
  EXPECT_DOUBLE_EQ(points.back().share, 1);
  const auto above = [&](double share) {
    return std::count_if(points.begin(), points.end(), [&](const CdfPoint& point) { return point.share > share; });
  };
  EXPECT_GT(above(0.9), 50);
  EXPECT_GT(above(0.999), 20);
}

constexpr int draws = 100'000;

TEST(RandomTest, Numbers_AreUniformOrExponentialAndOfTheirSeed) {
  Random one(7);
  Random same(7);
  Random other(8);
  double uniforms = 0;
  double exponentials = 0;
  int longer_than_mean = 0;
  for (int i = 0; i < draws; ++i) {
    const double value = uniform(one);
    ASSERT_TRUE(value >= 0 && value < 1) << value;
    ASSERT_EQ(value, uniform(same));
    uniforms += value;
    const double until_next = exponential(other, 3);
    ASSERT_GE(until_next, 0);
    exponentials += until_next;
    longer_than_mean += until_next > 3 ? 1 : 0;
  }
  EXPECT_NEAR(uniforms / draws, 0.5, 0.01);
  EXPECT_NEAR(exponentials / draws, 3, 0.05);
  EXPECT_NEAR(static_cast<double>(longer_than_mean) / draws, std::exp(-1), 0.01);
}

TEST(ZipfTest, Number_IsDrawnAsOftenAsItsRankSays) {
  const struct {
    std::size_t count;
    double exponent;
  } rows[] = {{1, 1}, {4, 0}, {50, 1}};
  for (const auto& row : rows) {
    const Zipf zipf(row.count, row.exponent);
    Random random(2);
    std::vector<int> drawn(row.count);
    for (int i = 0; i < draws; ++i) ++drawn.at(zipf(random));
    double all = 0;
    for (std::size_t i = 1; i <= row.count; ++i) all += std::pow(i, -row.exponent);
    for (std::size_t i = 0; i < row.count; ++i) {
      EXPECT_NEAR(static_cast<double>(drawn[i]) / draws, std::pow(i + 1, -row.exponent) / all, 0.006) << i;
    }
  }
}

// Sleeps until the kernel has counted `count` more voluntary switches of the calling thread: a sleep that is over
// before the thread has left its processor is none.
void sleep_until_switched(long count) {
  rusage counted{};
  ASSERT_EQ(::getrusage(RUSAGE_THREAD, &counted), 0);
  const long enough = counted.ru_nvcsw + count;
  while (counted.ru_nvcsw < enough) {
    std::this_thread::sleep_for(std::chrono::microseconds(1));
    ASSERT_EQ(::getrusage(RUSAGE_THREAD, &counted), 0);
  }
}

TEST(UsageTest, Work_TakesProcessorTime) {
  const auto before = usage().processor_time;
  volatile unsigned work = 0;
  while (usage().processor_time <= before && work < 4'000'000'000U) work = work + 1;
  EXPECT_GT(usage().processor_time, before);
}

TEST(UsageTest, SwitchesOfEndedThreads_AreCounted) {
  const Usage before = usage();
  std::thread([] { sleep_until_switched(100); }).join();
  const Usage after = usage();
  EXPECT_GE(after.voluntary_switches, before.voluntary_switches + 100);
  EXPECT_EQ(after.switches(), after.voluntary_switches + after.involuntary_switches);
}

TEST(UsageTest, AllocatedBlock_IsCounted) {
  constexpr std::size_t size = 100'000;
  const double before = allocated_bytes();
  const std::vector<char> block(size, 'x');
  EXPECT_NEAR(allocated_bytes() - before, before > 0 ? size : 0, 10'000) << "0 if a sanitizer allocates";
  ASSERT_EQ(block.back(), 'x');
}

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

TEST_F(PacerTest, Calls_AreDueAtTheRateWithTheGapsOfTheirSeed) {
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

TEST_F(PacerTest, LateCall_CountsFromWhenItWasDue) {
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

TEST_F(PacerTest, Stop_EndsALongSleepAndBeginsNoCall) {
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

TEST_F(PacerTest, CallsThatNeverBegan_CountFromWhenTheyWereDue) {
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

TEST_F(PacerTest, RateThatIsNone_IsRefused) {
  for (const double rate : {0.0, -1.0, 1e9, std::nan(""), std::numeric_limits<double>::infinity()}) {
    EXPECT_THROW(Pacer(timeline_, rate, 1), std::invalid_argument) << rate;
  }
}

}  // namespace
}  // namespace dlock::bench

#include "bench/measure/samples.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace dlock::bench {
namespace {

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

TEST(Samples, PercentilesAreSamplesByNearestRank) {
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

TEST(Samples, SamplesThatAreAddedAfterAPercentileCount) {
  Samples samples = one_to(10);
  EXPECT_DOUBLE_EQ(samples.longest(), 10);
  samples.add(microseconds(20));
  EXPECT_DOUBLE_EQ(samples.longest(), 20);
  samples.add(of({15}));
  EXPECT_EQ(samples.count(), 12U);
  EXPECT_DOUBLE_EQ(samples.percentile(11.0 / 12), 15);
}

TEST(Samples, CdfOfFewSamplesHasEachValueOnce) {
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

TEST(Samples, CdfOfManySamplesIsExactAndCloserTogetherTowardsTheSlowEnd) {
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

}  // namespace
}  // namespace dlock::bench

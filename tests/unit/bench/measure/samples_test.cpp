#include "bench/measure/samples.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace dlock::bench {
namespace {

using std::chrono::microseconds;

// 1 us to `count` us, in an order that is not sorted.
Samples one_to(int count) {
  Samples samples;
  for (int i = 0; i < count; ++i) samples.add(microseconds(i % 2 == 0 ? count - i / 2 : 1 + i / 2));
  return samples;
}

TEST(Samples, PercentilesAreSamplesByNearestRank) {
  const Samples samples = one_to(1000);
  EXPECT_EQ(samples.count(), 1000U);
  EXPECT_DOUBLE_EQ(samples.percentile(0.5), 500);
  EXPECT_DOUBLE_EQ(samples.percentile(0.9), 900);
  EXPECT_DOUBLE_EQ(samples.percentile(0.99), 990);
  EXPECT_DOUBLE_EQ(samples.percentile(0.999), 999);
  EXPECT_DOUBLE_EQ(samples.longest(), 1000);
  EXPECT_DOUBLE_EQ(samples.percentile(0), 1);
  EXPECT_DOUBLE_EQ(samples.percentile(0.9991), 1000);
}

TEST(Samples, ARankThatIsWholeIsNotRoundedUp) {
  const Samples samples = one_to(100);
  for (int percent = 1; percent <= 100; ++percent) EXPECT_DOUBLE_EQ(samples.percentile(percent / 100.0), percent);
}

TEST(Samples, OneOfThemIsEveryPercentile) {
  Samples samples;
  samples.add(microseconds(7));
  EXPECT_DOUBLE_EQ(samples.percentile(0), 7);
  EXPECT_DOUBLE_EQ(samples.percentile(0.5), 7);
  EXPECT_DOUBLE_EQ(samples.longest(), 7);
}

TEST(Samples, NoneAreZero) {
  const Samples samples;
  EXPECT_TRUE(samples.empty());
  EXPECT_EQ(samples.percentile(0.5), 0);
  EXPECT_EQ(samples.mean(), 0);
  EXPECT_TRUE(samples.cdf(10).empty());
}

TEST(Samples, ThoseAddedAfterALookCount) {
  Samples samples = one_to(10);
  EXPECT_DOUBLE_EQ(samples.longest(), 10);
  samples.add(microseconds(20));
  EXPECT_DOUBLE_EQ(samples.longest(), 20);
  Samples others;
  others.add(microseconds(15));
  samples.add(others);
  EXPECT_EQ(samples.count(), 12U);
  EXPECT_DOUBLE_EQ(samples.percentile(11.0 / 12), 15);
}

TEST(Samples, TheMeanIsThatOfAll) {
  EXPECT_DOUBLE_EQ(one_to(9).mean(), 5);
}

TEST(Cdf, OfFewSamplesHasAllOfThem) {
  const auto points = one_to(4).cdf(10);
  ASSERT_EQ(points.size(), 4U);
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_DOUBLE_EQ(points[i].microseconds, static_cast<double>(i + 1));
    EXPECT_DOUBLE_EQ(points[i].share, static_cast<double>(i + 1) / 4);
  }
}

TEST(Cdf, EqualSamplesAreOnePoint) {
  Samples samples;
  for (const int value : {3, 1, 3, 3}) samples.add(microseconds(value));
  const auto points = samples.cdf(10);
  ASSERT_EQ(points.size(), 2U);
  EXPECT_DOUBLE_EQ(points[0].share, 0.25);
  EXPECT_DOUBLE_EQ(points[1].microseconds, 3);
  EXPECT_DOUBLE_EQ(points[1].share, 1);
}

TEST(Cdf, OfManySamplesIsExactAndCloserTogetherTowardsTheSlowEnd) {
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

TEST(Cdf, OfOnePointIsTheSlowest) {
  const auto points = one_to(5).cdf(1);
  ASSERT_EQ(points.size(), 1U);
  EXPECT_DOUBLE_EQ(points[0].microseconds, 5);
  EXPECT_DOUBLE_EQ(points[0].share, 1);
}

}  // namespace
}  // namespace dlock::bench

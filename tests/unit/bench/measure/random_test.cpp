#include "bench/measure/random.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace dlock::bench {
namespace {

constexpr int draws = 100'000;

TEST(Uniform, StaysBelowOneAndIsTheSameForTheSameSeed) {
  Random one(7);
  Random same(7);
  Random other(8);
  int equal = 0;
  double sum = 0;
  for (int i = 0; i < draws; ++i) {
    const double value = uniform(one);
    ASSERT_GE(value, 0);
    ASSERT_LT(value, 1);
    ASSERT_EQ(value, uniform(same));
    equal += value == uniform(other) ? 1 : 0;
    sum += value;
  }
  EXPECT_EQ(equal, 0);
  EXPECT_NEAR(sum / draws, 0.5, 0.01);
}

TEST(Exponential, HasItsMeanAndItsShape) {
  Random random(1);
  double sum = 0;
  int longer_than_mean = 0;
  for (int i = 0; i < draws; ++i) {
    const double value = exponential(random, 3);
    ASSERT_GE(value, 0);
    sum += value;
    longer_than_mean += value > 3 ? 1 : 0;
  }
  EXPECT_NEAR(sum / draws, 3, 0.05);
  EXPECT_NEAR(static_cast<double>(longer_than_mean) / draws, std::exp(-1), 0.01);
}

TEST(Zipf, DrawsEachNumberAsOftenAsItsRankSays) {
  constexpr std::size_t count = 50;
  const Zipf zipf(count, 1);
  Random random(2);
  std::vector<int> drawn(count);
  for (int i = 0; i < draws; ++i) ++drawn.at(zipf(random));
  double all = 0;
  for (std::size_t i = 1; i <= count; ++i) all += 1 / static_cast<double>(i);
  for (std::size_t i = 0; i < count; ++i) {
    EXPECT_NEAR(static_cast<double>(drawn[i]) / draws, 1 / all / static_cast<double>(i + 1), 0.006) << i;
  }
}

TEST(Zipf, WithoutSkewDrawsAllAlike) {
  const Zipf zipf(4, 0);
  Random random(3);
  std::vector<int> drawn(4);
  for (int i = 0; i < draws; ++i) ++drawn.at(zipf(random));
  for (const int each : drawn) EXPECT_NEAR(static_cast<double>(each) / draws, 0.25, 0.01);
}

TEST(Zipf, IsTheSameForTheSameSeed) {
  const Zipf zipf(1000, 1);
  Random one(4);
  Random same(4);
  Random other(5);
  int different = 0;
  for (int i = 0; i < 100; ++i) {
    const std::size_t drawn = zipf(one);
    ASSERT_EQ(drawn, zipf(same));
    different += drawn != zipf(other) ? 1 : 0;
  }
  EXPECT_GT(different, 50);
}

TEST(Zipf, OfOneNumberIsThatNumber) {
  Random random(6);
  EXPECT_EQ(Zipf(1, 1)(random), 0U);
}

}  // namespace
}  // namespace dlock::bench

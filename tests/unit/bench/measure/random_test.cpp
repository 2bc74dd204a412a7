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

}  // namespace
}  // namespace dlock::bench

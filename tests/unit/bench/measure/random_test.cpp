#include "bench/measure/random.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace dlock::bench {
namespace {

constexpr int draws = 100'000;

TEST(Random, IsUniformAndExponentialAndTheSameForTheSameSeed) {
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

#include "bench/report/page/axis.hpp"

#include <gtest/gtest.h>

#include <limits>

namespace dlock::bench {
namespace {

std::vector<std::string> labels(const Axis& axis) {
  std::vector<std::string> result;
  for (const Tick& each : axis.ticks()) result.push_back(each.label);
  return result;
}

using Labels = std::vector<std::string>;

TEST(Axis, FromZeroEndsAtARoundNumber) {
  const Axis axis = Axis::from_zero({130'000, 7}, "pairs", "1/s");
  EXPECT_EQ(labels(axis), (Labels{"0", "50 k/s", "100 k/s", "150 k/s"}));
  EXPECT_EQ(axis.share(0), 0);
  EXPECT_DOUBLE_EQ(axis.share(75'000), 0.5);
  EXPECT_EQ(axis.title(), "pairs");
}

TEST(Axis, LogarithmicHasPowersOfTen) {
  const Axis axis = Axis::logarithmic({1, 1e6}, "time", "us");
  EXPECT_EQ(labels(axis), (Labels{"1 µs", "10 µs", "100 µs", "1 ms", "10 ms", "100 ms", "1 s"}));
  EXPECT_DOUBLE_EQ(axis.share(1000), 0.5);
}

TEST(Axis, LogarithmicOverLittleHasMoreTicks) {
  const Axis axis = Axis::logarithmic({45, 180}, "time", "us");
  EXPECT_EQ(labels(axis), (Labels{"20 µs", "50 µs", "100 µs", "200 µs"}));
}

TEST(Axis, LogarithmicOverManyPowersLeavesSomeOut) {
  EXPECT_LE(Axis::logarithmic({1e-6, 1e12}, "time", "").ticks().size(), 8U);
}

TEST(Axis, WhatIsBeyondItsEndsLiesAtThem) {
  const Axis axis = Axis::logarithmic({10, 1000}, "time", "us");
  EXPECT_EQ(axis.share(0), 0);
  EXPECT_EQ(axis.share(-5), 0);
  EXPECT_EQ(axis.share(1e9), 1);
  EXPECT_EQ(axis.share(std::numeric_limits<double>::quiet_NaN()), 0);
  EXPECT_EQ(axis.share(std::numeric_limits<double>::infinity()), 1);
}

TEST(Axis, HasEndsWithoutUsableValues) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const auto& values : {std::vector<double>{}, {0}, {-1}, {nan}, {5}, {1e300, 1e-300}}) {
    for (const Axis& axis :
         {Axis::logarithmic(values, "", ""), Axis::from_zero(values, "", ""), Axis::of(values, "")}) {
      EXPECT_GE(axis.ticks().size(), 1U);
      for (const Tick& tick : axis.ticks()) {
        EXPECT_GE(tick.share, 0);
        EXPECT_LE(tick.share, 1);
      }
    }
  }
}

TEST(Axis, OfValuesHasTicksAtThem) {
  const Axis waiters = Axis::of({256, 2, 8, 8}, "waiters");
  EXPECT_EQ(labels(waiters), (Labels{"2", "8", "256"}));
  EXPECT_EQ(waiters.share(2), 0);
  EXPECT_NEAR(waiters.share(8), 2.0 / 7, 1e-9);  // logarithmic
  const Axis trips = Axis::of({0, 1, 5, 20}, "round trip");
  EXPECT_DOUBLE_EQ(trips.share(5), 0.25);  // linear, because of the 0
}

TEST(Axis, OfValuesLeavesOutTicksWithoutRoom) {
  EXPECT_EQ(labels(Axis::of({0, 1, 100}, "")), (Labels{"0", "100"}));
}

TEST(Axis, SharesHaveMoreRoomAtTheSlowEnd) {
  const Axis axis = Axis::of_shares("share");
  EXPECT_EQ(labels(axis), (Labels{"0 %", "50 %", "90 %", "99 %", "99.9 %", "99.99 %"}));
  EXPECT_NEAR(axis.share(0.9), 0.25, 1e-9);
  EXPECT_NEAR(axis.share(0.99), 0.5, 1e-9);
  EXPECT_EQ(axis.share(1), 1);
}

}  // namespace
}  // namespace dlock::bench

#include "bench/report/result.hpp"

#include <gtest/gtest.h>

#include <limits>

#include "tests/unit/bench/report/sample.hpp"

namespace dlock::bench {
namespace {

TEST(Result, AFigureHasAMedianAndARange) {
  const Figure figure = lower("p50", {5, 1, 9});
  EXPECT_EQ(figure.median(), 5);
  EXPECT_EQ(figure.lowest(), 1);
  EXPECT_EQ(figure.highest(), 9);
}

TEST(Result, WhatIsNoNumberDoesNotCount) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const Figure figure = lower("p50", {nan, 4, std::numeric_limits<double>::infinity(), 2, nan});
  EXPECT_EQ(figure.median(), 3);
  EXPECT_EQ(figure.lowest(), 2);
  EXPECT_EQ(figure.highest(), 4);
}

TEST(Result, AFigureWithoutRepeatsIsZero) {
  const Figure figure = lower("p50", {});
  EXPECT_EQ(figure.median(), 0);
  EXPECT_EQ(figure.lowest(), 0);
  EXPECT_EQ(figure.highest(), 0);
}

TEST(Result, FindsAMeasurementByAllThatTellsItFromOthers) {
  Report report;
  report.measurements = {throughput("redis queue", 8, {1}), throughput("redis queue", 64, {2}),
                         throughput("redis queue", 64, {3}, Who::by_hand), throughput("file", 64, {4})};
  const Parameters callers{{"callers", 64}};
  EXPECT_EQ(report.find("throughput", "redis queue", Who::dlock, callers), &report.measurements[1]);
  EXPECT_EQ(report.find("throughput", "redis queue", Who::by_hand, callers), &report.measurements[2]);
  EXPECT_EQ(report.find("throughput", "file", Who::dlock, callers), &report.measurements[3]);
  EXPECT_EQ(report.find("latency", "redis queue", Who::dlock, callers), nullptr);
  EXPECT_EQ(report.find("throughput", "redis queue", Who::dlock, {}), nullptr);
}

// The ratio of the medians would be 10 / 2.
TEST(Result, TheRatioToTheFloorIsTheMedianOfTheRatiosOfRepeats) {
  Report report;
  report.measurements = {latency("redis queue", {10, 2, 30}), latency("redis queue", {2, 1, 10}, Who::by_hand),
                         latency("redis queue", {1, 1, 1}, Who::same_requests)};
  EXPECT_EQ(ratio_to_floor(report, report.measurements[0], Who::by_hand, figure::p50), 3);
  EXPECT_EQ(ratio_to_floor(report, report.measurements[0], Who::same_requests, figure::p50), 10);
}

TEST(Result, RepeatsThatOnlyOneOfThemHasHaveNoRatio) {
  Report report;
  report.measurements = {latency("file", {2, 4, 100}), latency("file", {2, 2}, Who::by_hand)};
  EXPECT_EQ(ratio_to_floor(report, report.measurements[0], Who::by_hand, figure::p50), 1.5);
}

TEST(Result, NoRatioWithoutAFloorOrAFigure) {
  Report report;
  report.measurements = {latency("file", {2}), latency("redis queue", {2}), latency("redis queue", {0}, Who::by_hand)};
  EXPECT_EQ(ratio_to_floor(report, report.measurements[0], Who::by_hand, figure::p50), 0);
  EXPECT_EQ(ratio_to_floor(report, report.measurements[1], Who::by_hand, figure::p50), 0);
  EXPECT_EQ(ratio_to_floor(report, report.measurements[1], Who::by_hand, figure::p99), 0);
  EXPECT_EQ(ratio_to_floor(report, report.measurements[1], Who::same_requests, figure::p50), 0);
}

TEST(Result, CallsUnderWayAreComparedWithAsManyCallers) {
  Report report;
  report.measurements = {under_way("redis queue", 64, {30}, {7}), throughput("redis queue", 64, {20}),
                         throughput("redis queue", 64, {10}, Who::by_hand)};
  EXPECT_EQ(floor_of(report, report.measurements[0], Who::by_hand), &report.measurements[2]);
  EXPECT_EQ(floor_of(report, report.measurements[0], Who::same_requests), nullptr);
  EXPECT_EQ(ratio_to_floor(report, report.measurements[0], Who::by_hand, figure::throughput), 3);
}

}  // namespace
}  // namespace dlock::bench

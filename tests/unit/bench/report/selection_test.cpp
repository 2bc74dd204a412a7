#include "bench/report/selection.hpp"

#include <gtest/gtest.h>

#include <limits>

#include "tests/unit/bench/report/sample.hpp"

namespace dlock::bench {
namespace {

TEST(Selection, LabelsAreThoseKnownAndThoseMeasured) {
  Report report;
  report.services = {service("redis", "queue"), service("file", "")};
  report.measurements = {latency("file", {1}), latency("etcd", {1}), latency("etcd", {1}, Who::by_hand)};
  EXPECT_EQ(labels_of(report), (std::vector<std::string>{"redis queue", "file", "etcd"}));
}

TEST(Selection, PointsAreInOrderAndHaveNoOtherParameters) {
  Report report;
  report.measurements = {measurement("distance", "redis queue", {{"round_trip_ms", 20}}, {}),
                         measurement("distance", "redis queue", {{"round_trip_ms", 1}}, {}),
                         measurement("distance", "redis queue", {{"round_trip_ms", 5}, {"waiters", 8}}, {}),
                         measurement("distance", "redis queue", {{"round_trip_ms", 5}}, {}, Who::by_hand)};
  const auto points = points_of(report, "distance", "redis queue", Who::dlock, "round_trip_ms");
  ASSERT_EQ(points.size(), 2U);
  EXPECT_EQ(points[0].x, 1);
  EXPECT_EQ(points[0].measurement, &report.measurements[1]);
  EXPECT_EQ(fewest_of(points), &report.measurements[1]);
  EXPECT_EQ(most_of(points), &report.measurements[0]);
  const auto others = points_of(report, "distance", "redis queue", Who::dlock, "round_trip_ms", {{"waiters", 8}});
  ASSERT_EQ(others.size(), 1U);
  EXPECT_EQ(others[0].measurement, &report.measurements[2]);
}

TEST(Selection, AMedianIsAbsentWhereNothingWasMeasured) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const Measurement some = latency("file", {3, 1, 2});
  EXPECT_EQ(median_of(&some, "p50"), 2);
  EXPECT_EQ(median_of(&some, "p99"), std::nullopt);
  EXPECT_EQ(median_of(nullptr, "p50"), std::nullopt);
  const Measurement none = latency("file", {nan});
  EXPECT_EQ(median_of(&none, "p50"), std::nullopt);
}

TEST(Selection, ValuesOfAParameterAreThoseOfDlock) {
  Report report;
  report.measurements = {throughput("redis queue", 64, {1}), throughput("file", 8, {1}), throughput("file", 64, {1}),
                         throughput("file", 1, {1}, Who::by_hand)};
  EXPECT_EQ(values_of(report, "throughput", "callers"), (std::vector<double>{8, 64}));
}

}  // namespace
}  // namespace dlock::bench

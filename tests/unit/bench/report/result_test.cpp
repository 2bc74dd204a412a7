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

TEST(Result, TheMedianIsAbsentWithoutAMeasurementAFigureOrANumber) {
  const Measurement some = latency("file", {3, 1, 2});
  EXPECT_EQ(median_of(&some, figure::p50), 2);
  EXPECT_EQ(median_of(&some, figure::p99), std::nullopt);
  EXPECT_EQ(median_of(nullptr, figure::p50), std::nullopt);
  const Measurement none = latency("file", {std::numeric_limits<double>::quiet_NaN()});
  EXPECT_EQ(median_of(&none, figure::p50), std::nullopt);
}

TEST(Result, LabelsAreOfAllServicesThatAreKnownOrWereMeasured) {
  Report report;
  report.services = {service("file", ""), service("etcd", "")};
  report.measurements = {latency("redis queue", {1}), latency("file", {1}), latency("redis queue", {1})};
  EXPECT_EQ(report.labels(), (std::vector<std::string>{"file", "etcd", "redis queue"}));
  EXPECT_EQ(report.service("etcd"), &report.services[1]);
  EXPECT_EQ(report.service("redis queue"), nullptr);
}

}  // namespace
}  // namespace dlock::bench

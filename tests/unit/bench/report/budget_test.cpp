#include "bench/report/budget.hpp"

#include <gtest/gtest.h>

#include "tests/unit/bench/report/sample.hpp"

namespace dlock::bench {
namespace {

Report all_services() {
  Report report;
  report.services = {service("memory", "queue"),
                     service("file", ""),
                     service("redis", "queue"),
                     service("redis", "poll"),
                     service("zookeeper", "sequential"),
                     service("zookeeper", "sequential-herd"),
                     service("postgresql", "table"),
                     service("postgresql", "advisory"),
                     service("postgresql", "for-update"),
                     service("postgresql", "optimistic"),
                     service("etcd", "")};
  return report;
}

// 0: there is none.
double limit_of(const Measurement& measurement, const char* figure, Better better, const std::string& unit = "") {
  const auto budget = budget_of(all_services(), measurement, figure);
  if (!budget || budget->better != better || budget->unit != unit) return 0;
  return budget->limit;
}

double latency_budget(const std::string& label) {
  return limit_of(latency(label, {1}), figure::p50, Better::lower);
}

double throughput_budget(const std::string& label, double callers) {
  return limit_of(throughput(label, callers, {1}), figure::throughput, Better::higher);
}

TEST(Budget, LatencyOfAFreeLock) {
  EXPECT_EQ(latency_budget("redis queue"), 0.85);
  EXPECT_EQ(latency_budget("redis poll"), 0.85);
  EXPECT_EQ(latency_budget("postgresql table"), 1.2);
  EXPECT_EQ(latency_budget("zookeeper sequential"), 0.8);
  EXPECT_EQ(latency_budget("etcd"), 1.2);
}

TEST(Budget, ThroughputByCallers) {
  EXPECT_EQ(throughput_budget("redis queue", 8), 1.0);
  EXPECT_EQ(throughput_budget("redis poll", 64), 1.5);
  EXPECT_EQ(throughput_budget("redis queue", 256), 1.7);
  EXPECT_EQ(throughput_budget("zookeeper sequential", 64), 3.0);
  EXPECT_EQ(throughput_budget("etcd", 64), 2.0);
  EXPECT_EQ(throughput_budget("postgresql table", 8), 1.0);
  EXPECT_EQ(throughput_budget("postgresql table", 64), 2.4);
}

TEST(Budget, AsynchronousCallsOfRedis) {
  const Measurement measurement = under_way("redis queue", 64, {1}, {1});
  EXPECT_EQ(limit_of(measurement, figure::throughput, Better::higher), 1.8);
  EXPECT_EQ(limit_of(measurement, figure::client_cpu, Better::lower, "us"), 7);
}

TEST(Budget, NoneForOthers) {
  EXPECT_EQ(latency_budget("file"), 0);
  EXPECT_EQ(latency_budget("zookeeper sequential-herd"), 0);
  EXPECT_EQ(latency_budget("postgresql advisory"), 0);
  EXPECT_EQ(throughput_budget("redis queue", 1), 0);
  EXPECT_EQ(throughput_budget("zookeeper sequential", 8), 0);
  EXPECT_EQ(throughput_budget("etcd", 8), 0);
  EXPECT_EQ(throughput_budget("postgresql table", 256), 0);
  EXPECT_EQ(throughput_budget("postgresql optimistic", 64), 0);
  EXPECT_EQ(throughput_budget("file", 64), 0);
}

TEST(Budget, NoneForOtherMeasurementsNorForFloors) {
  const Report report = all_services();
  const auto has_none = [&](const Measurement& measurement, const char* figure) {
    return !budget_of(report, measurement, figure);
  };
  EXPECT_TRUE(has_none(latency("redis queue", {1}, Who::by_hand), figure::p50));
  EXPECT_TRUE(has_none(latency("unheard of", {1}), figure::p50));
  EXPECT_TRUE(has_none(latency("redis queue", {1}), figure::p99));
  EXPECT_TRUE(has_none(measurement(scenario::latency, "redis queue", {{parameter::rate, 100}}, {}), figure::p50));
  EXPECT_TRUE(
      has_none(measurement(scenario::distance, "redis queue", {{parameter::round_trip_ms, 1}}, {}), figure::p50));
  EXPECT_TRUE(has_none(under_way("redis queue", 10'000, {1}, {1}), figure::throughput));
  EXPECT_TRUE(has_none(under_way("postgresql table", 64, {1}, {1}), figure::client_cpu));
}

}  // namespace
}  // namespace dlock::bench

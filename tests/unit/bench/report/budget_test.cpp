#include "bench/report/budget.hpp"

#include <gtest/gtest.h>

#include "tests/unit/bench/report/sample.hpp"

namespace dlock::bench {
namespace {

Report all_services() {
  Report report;
  report.services = {service("memory", "queue"),          service("file", ""),
                     service("redis", "queue"),           service("redis", "poll"),
                     service("zookeeper", "sequential"),  service("zookeeper", "sequential-herd"),
                     service("postgresql", "table"),      service("postgresql", "advisory"),
                     service("postgresql", "for-update"), service("postgresql", "optimistic")};
  return report;
}

double latency_budget(const std::string& label) {
  const auto budget = budget_of(all_services(), latency(label, {1}));
  if (!budget || budget->figure != figure::p50 || budget->better != Better::lower) return 0;
  return budget->ratio;
}

double throughput_budget(const std::string& label, double callers) {
  const auto budget = budget_of(all_services(), throughput(label, callers, {1}));
  if (!budget || budget->figure != figure::throughput || budget->better != Better::higher) return 0;
  return budget->ratio;
}

TEST(Budget, LatencyOfAFreeLock) {
  EXPECT_EQ(latency_budget("redis queue"), 1.35);
  EXPECT_EQ(latency_budget("file"), 1.35);
  EXPECT_EQ(latency_budget("postgresql advisory"), 1.35);
  EXPECT_EQ(latency_budget("zookeeper sequential"), 0.90);
  EXPECT_EQ(latency_budget("zookeeper sequential-herd"), 1.35);
}

TEST(Budget, ThroughputByCallers) {
  EXPECT_EQ(throughput_budget("redis queue", 8), 1.0);
  EXPECT_EQ(throughput_budget("redis poll", 64), 1.5);
  EXPECT_EQ(throughput_budget("redis queue", 256), 1.7);
  EXPECT_EQ(throughput_budget("zookeeper sequential", 64), 1.7);
  EXPECT_EQ(throughput_budget("postgresql table", 64), 1.5);
  EXPECT_EQ(throughput_budget("postgresql advisory", 64), 1.0);
}

TEST(Budget, NoneForOthers) {
  EXPECT_EQ(throughput_budget("redis queue", 1), 0);
  EXPECT_EQ(throughput_budget("zookeeper sequential", 8), 0);
  EXPECT_EQ(throughput_budget("zookeeper sequential", 256), 0);
  EXPECT_EQ(throughput_budget("postgresql table", 256), 0);
  EXPECT_EQ(throughput_budget("postgresql for-update", 64), 0);
  EXPECT_EQ(throughput_budget("postgresql optimistic", 64), 0);
  EXPECT_EQ(throughput_budget("file", 64), 0);
}

TEST(Budget, NoneForOtherScenariosNorForTheFloorItself) {
  const Report report = all_services();
  EXPECT_FALSE(budget_of(report, latency("redis queue", {1}, Who::floor)));
  EXPECT_FALSE(budget_of(report, latency("unheard of", {1})));
  EXPECT_FALSE(budget_of(report, measurement(scenario::latency, "redis queue", {{parameter::rate, 100}}, {})));
  EXPECT_FALSE(budget_of(report, measurement(scenario::distance, "redis queue", {{parameter::round_trip_ms, 1}}, {})));
  EXPECT_FALSE(budget_of(report, measurement(scenario::throughput, "redis queue", {{parameter::outstanding, 64}}, {})));
}

}  // namespace
}  // namespace dlock::bench

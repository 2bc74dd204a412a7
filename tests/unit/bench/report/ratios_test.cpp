#include "bench/report/ratios.hpp"

#include <gtest/gtest.h>

#include "tests/unit/bench/report/sample.hpp"

namespace dlock::bench {
namespace {

TEST(Ratios, HasALineForEachServiceWithAFloor) {
  Report report;
  report.services = {service("memory", "queue"), service("redis", "queue"), service("zookeeper", "sequential")};
  report.measurements = {latency("memory queue", {1}),
                         latency("redis queue", {12}),
                         latency("redis queue", {10}, Who::floor),
                         throughput("redis queue", 64, {300}),
                         throughput("redis queue", 64, {100}, Who::floor),
                         throughput("zookeeper sequential", 8, {10}),
                         throughput("zookeeper sequential", 8, {5}, Who::floor)};
  const Ratios ratios = ratios_of(report);
  EXPECT_EQ(ratios.columns, (std::vector<std::string>{"latency p50", "8 callers", "64 callers"}));
  ASSERT_EQ(ratios.rows.size(), 2U);
  EXPECT_EQ(ratios.rows[0].service, "redis queue");
  ASSERT_EQ(ratios.rows[0].cells.size(), 3U);
  EXPECT_DOUBLE_EQ(ratios.rows[0].cells[0]->value, 1.2);
  EXPECT_FALSE(ratios.rows[0].cells[1]);
  EXPECT_DOUBLE_EQ(ratios.rows[0].cells[2]->value, 3);
  EXPECT_EQ(ratios.rows[1].service, "zookeeper sequential");
  EXPECT_DOUBLE_EQ(ratios.rows[1].cells[1]->value, 2);
  EXPECT_FALSE(ratios.any_missed());
}

TEST(Ratios, MissesABudgetInItsDirection) {
  const Budget at_most{"p50", Better::lower, 1.35};
  EXPECT_FALSE((Ratio{1.35, at_most}.missed()));
  EXPECT_TRUE((Ratio{1.36, at_most}.missed()));
  const Budget at_least{"throughput", Better::higher, 1.5};
  EXPECT_FALSE((Ratio{1.5, at_least}.missed()));
  EXPECT_TRUE((Ratio{1.49, at_least}.missed()));
  EXPECT_FALSE((Ratio{9, std::nullopt}.missed()));
}

TEST(Ratios, MissesItOnlyWhereTheDigitsShownDo) {
  EXPECT_FALSE((Ratio{1.354, Budget{"p50", Better::lower, 1.35}}.missed()));
  EXPECT_FALSE((Ratio{1.496, Budget{"throughput", Better::higher, 1.5}}.missed()));
}

TEST(Ratios, SaysTheBudget) {
  EXPECT_EQ(budget_text({"p50", Better::lower, 0.9}), "<= 0.90");
  EXPECT_EQ(budget_text({"throughput", Better::higher, 1.7}), ">= 1.70");
}

}  // namespace
}  // namespace dlock::bench

#include "bench/report/ratios.hpp"

#include <gtest/gtest.h>

#include "tests/unit/bench/report/sample.hpp"

namespace dlock::bench {
namespace {

Report two_services() {
  Report report;
  report.services = {service("memory", "queue"), service("redis", "queue"), service("zookeeper", "sequential")};
  report.measurements = {latency("memory queue", {1}),
                         latency("redis queue", {12}),
                         latency("redis queue", {6}, Who::same_requests),
                         latency("redis queue", {10}, Who::by_hand),
                         throughput("redis queue", 64, {300}),
                         throughput("redis queue", 64, {100}, Who::by_hand),
                         throughput("zookeeper sequential", 8, {10}),
                         throughput("zookeeper sequential", 8, {5}, Who::by_hand)};
  return report;
}

TEST(Ratios, HasALineForEachServiceWithAFloor) {
  const Ratios ratios = ratios_of(two_services(), Who::by_hand);
  EXPECT_EQ(ratios.columns, (std::vector<std::string>{"latency", "8 callers", "64 callers"}));
  ASSERT_EQ(ratios.rows.size(), 2U);
  EXPECT_EQ(ratios.rows[0].service, "redis queue");
  ASSERT_EQ(ratios.rows[0].cells.size(), 3U);
  EXPECT_DOUBLE_EQ(ratios.rows[0].cells[0]->value, 1.2);
  EXPECT_FALSE(ratios.rows[0].cells[1]);
  EXPECT_DOUBLE_EQ(ratios.rows[0].cells[2]->value, 3);
  EXPECT_EQ(ratios.rows[1].service, "zookeeper sequential");
  EXPECT_DOUBLE_EQ(ratios.rows[1].cells[1]->value, 2);
  EXPECT_TRUE(ratios.any_missed());
}

TEST(Ratios, ToTheSameRequestsHaveNoBudget) {
  const Ratios ratios = ratios_of(two_services(), Who::same_requests);
  ASSERT_EQ(ratios.rows.size(), 1U);
  EXPECT_EQ(ratios.rows[0].service, "redis queue");
  EXPECT_DOUBLE_EQ(ratios.rows[0].cells[0]->value, 2);
  EXPECT_FALSE(ratios.rows[0].cells[0]->budget);
  EXPECT_FALSE(ratios.rows[0].cells[2]);
  EXPECT_FALSE(ratios.any_missed());
}

TEST(Ratios, AsynchronousCallsHaveOneToAsManyCallersByHandAndTheirProcessorTime) {
  Report report = two_services();
  report.measurements.push_back(under_way("redis queue", 64, {150}, {6}));
  report.measurements.push_back(under_way("redis queue", 10'000, {400}, {5}));
  report.measurements.push_back(under_way("zookeeper sequential", 64, {150}, {6}));
  const Ratios ratios = ratios_of(report, Who::by_hand);
  EXPECT_EQ(ratios.columns,
            (std::vector<std::string>{"latency", "8 callers", "64 callers", "64 async.", "async. CPU"}));
  const auto& redis = ratios.rows[0].cells;
  EXPECT_EQ(ratio_text(redis[3].value()), "1.50");
  EXPECT_TRUE(redis[3]->missed());
  EXPECT_EQ(ratio_text(redis[4].value()), "6.00 µs");
  EXPECT_FALSE(redis[4]->missed());
  EXPECT_FALSE(ratios.rows[1].cells[3]) << "without such a floor";
  EXPECT_FALSE(ratios.rows[1].cells[4]);
  EXPECT_EQ(ratios_of(report, Who::same_requests).columns.size(), 3U);
}

TEST(Ratios, MissesABudgetInItsDirection) {
  const auto missed = [](double value, const Budget& budget) {
    return Ratio{.value = value, .budget = budget}.missed();
  };
  const Budget at_most{Better::lower, 1.35};
  EXPECT_FALSE(missed(1.35, at_most));
  EXPECT_TRUE(missed(1.36, at_most));
  EXPECT_FALSE(missed(1.354, at_most)) << "the digits shown do not";
  const Budget at_least{Better::higher, 1.5};
  EXPECT_FALSE(missed(1.5, at_least));
  EXPECT_TRUE(missed(1.49, at_least));
  EXPECT_FALSE(missed(1.496, at_least));
  EXPECT_FALSE(Ratio{.value = 9}.missed());
}

TEST(Ratios, SaysTheBudget) {
  EXPECT_EQ(budget_text({Better::lower, 0.9}), "<= 0.90");
  EXPECT_EQ(budget_text({Better::higher, 1.7}), ">= 1.70");
  EXPECT_EQ(budget_text({Better::lower, 7, "us"}), "<= 7.00 µs");
}

}  // namespace
}  // namespace dlock::bench

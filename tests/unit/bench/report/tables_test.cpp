#include "bench/report/tables.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/bench/report/sample.hpp"

namespace dlock::bench {
namespace {

using testing::ElementsAre;

Report of_three_services(std::vector<Measurement> measurements) {
  Report report;
  report.services = {service("memory", "queue"), service("redis", "queue"), service("zookeeper", "sequential")};
  report.measurements = std::move(measurements);
  return report;
}

// "redis queue, latency: 1.20 <= 0.85!"
std::vector<std::string> lines_of(const Report& report) {
  std::vector<std::string> lines;
  const Table table = ratios_table(report);
  for (std::size_t i = 0; i < table.columns.size(); ++i) {
    for (const Table::Row& row : table.rows) {
      const Cell& cell = row.cells[i];
      if (!cell.value) continue;
      lines.push_back(row.name + ", " + table.columns[i].name + ": " + cell.text + (cell.budget ? " " : "") +
                      cell.note + (cell.missed ? "!" : ""));
    }
  }
  return lines;
}

TEST(Overview, IsOfServicesNearbyWithoutColumnsThatNothingWasMeasuredFor) {
  const Table table = overview_table(of_three_services(
      {measurement(scenario::latency, "redis queue", {{parameter::round_trip_ms, 5}}, {lower(figure::p50, {9000})}),
       latency("redis queue", {60}), hand_off("redis queue", 8, 90)}));
  std::vector<std::string> columns;
  for (const Table::Column& each : table.columns) columns.push_back(each.name);
  EXPECT_THAT(columns, ElementsAre("free lock, p50", "hand-off, 8 waiters", "lost, in a crash", "lost, in a failover"));
  EXPECT_EQ(table.rows.at(1).cells.at(0).text, "60.0 µs");
}

TEST(Ratios, OfEachServiceWithAFloorColumnByColumn) {
  EXPECT_THAT(
      lines_of(of_three_services(
          {latency("memory queue", {1}), latency("redis queue", {12}), latency("redis queue", {10}, Who::by_hand),
           throughput("redis queue", 64, {300}), throughput("redis queue", 64, {100}, Who::by_hand),
           throughput("zookeeper sequential", 8, {10}), throughput("zookeeper sequential", 8, {5}, Who::by_hand)})),
      ElementsAre("redis queue, latency: 1.20 <= 0.85!", "zookeeper sequential, 8 callers: 2.00",
                  "redis queue, 64 callers: 3.00 >= 1.50"));
}

TEST(Ratios, OfAsynchronousCallsToAsManyCallersByHandWithTheirProcessorTime) {
  EXPECT_THAT(lines_of(of_three_services(
                  {under_way("redis queue", 64, {150}, {6}), under_way("redis queue", 10'000, {400}, {5}),
                   under_way("zookeeper sequential", 64, {150}, {6}), throughput("redis queue", 64, {200}),
                   throughput("redis queue", 64, {100}, Who::by_hand)})),
              ElementsAre("redis queue, 64 callers: 2.00 >= 1.50", "redis queue, 64 async.: 1.50 >= 1.80!",
                          "redis queue, 64 async., CPU: 6.00 µs <= 7.00 µs"));
}

TEST(Ratios, OfAnOpenLoopHaveNoBudgetAndOfADistanceThereAreNone) {
  const auto latency_with = [](const char* parameter, Who who) {
    return measurement(scenario::latency, "redis queue", {{parameter, 5}}, {lower(figure::p50, {7})}, who);
  };
  EXPECT_THAT(
      lines_of(of_three_services(
          {latency_with(parameter::rate, Who::dlock), latency_with(parameter::rate, Who::by_hand),
           latency_with(parameter::round_trip_ms, Who::dlock), latency_with(parameter::round_trip_ms, Who::by_hand)})),
      ElementsAre("redis queue, latency, 5 arrivals/s: 1.00"));
}

// The ratio of the medians would be 10 / 2. Repeats that only one of them has do not count.
TEST(Ratios, AreTheMedianOfTheRatiosOfRepeats) {
  EXPECT_THAT(lines_of(of_three_services(
                  {latency("memory queue", {10, 2, 30, 1000}), latency("memory queue", {2, 1, 10}, Who::by_hand)})),
              ElementsAre("memory queue, latency: 3.00"));
}

TEST(Ratios, NoneToNothing) {
  EXPECT_THAT(lines_of(of_three_services({latency("memory queue", {2}), latency("memory queue", {0}, Who::by_hand),
                                          latency("redis queue", {}), latency("redis queue", {1}, Who::by_hand)})),
              ElementsAre());
}

TEST(Ratios, MissABudgetInTheirDirectionByTheDigitsShown) {
  const auto line = [](double latency_ratio, double throughput_ratio) {
    return lines_of(of_three_services(
        {latency("redis queue", {latency_ratio}), latency("redis queue", {1}, Who::by_hand),
         throughput("redis queue", 64, {throughput_ratio}), throughput("redis queue", 64, {1}, Who::by_hand)}));
  };
  EXPECT_THAT(line(0.854, 1.496),
              ElementsAre("redis queue, latency: 0.85 <= 0.85", "redis queue, 64 callers: 1.50 >= 1.50"));
  EXPECT_THAT(line(0.86, 1.49),
              ElementsAre("redis queue, latency: 0.86 <= 0.85!", "redis queue, 64 callers: 1.49 >= 1.50!"));
}

struct BudgetRow {
  const char* backend;
  const char* strategy;
  std::vector<std::string>
      budgets;  // of latency; 1, 8, 64, 256 callers; 64 asynchronous calls, and their processor time
};

const BudgetRow budget_rows[] = {
    {"memory", "queue", {"", "", "", "", "", "", ""}},
    {"file", "", {"", "", "", "", "", "", ""}},
    {"redis", "queue", {"<= 0.85", "", ">= 1.00", ">= 1.50", ">= 1.70", ">= 1.80", "<= 7.00 µs"}},
    {"redis", "poll", {"<= 0.85", "", ">= 1.00", ">= 1.50", ">= 1.70", ">= 1.80", "<= 7.00 µs"}},
    {"zookeeper", "sequential", {"<= 0.80", "", "", ">= 3.00", "", "", ""}},
    {"zookeeper", "sequential-herd", {"", "", "", "", "", "", ""}},
    {"postgresql", "table", {"<= 1.20", "", ">= 1.00", ">= 2.40", "", "", ""}},
    {"postgresql", "optimistic", {"", "", "", "", "", "", ""}},
    {"postgresql", "advisory", {"", "", "", "", "", "", ""}},
    {"postgresql", "for-update", {"", "", "", "", "", "", ""}},
    {"etcd", "", {"<= 1.20", "", "", ">= 2.00", "", "", ""}},
};

// docs/performance.md has the same budgets.
TEST(Ratios, HaveTheBudgetsOfTheirService) {
  for (const BudgetRow& row : budget_rows) {
    Report report;
    report.services = {service(row.backend, row.strategy)};
    const std::string label = report.services[0].label;
    report.measurements = {latency(label, {1}), latency(label, {1}, Who::by_hand), under_way(label, 64, {1}, {1})};
    for (const double callers : {1.0, 8.0, 64.0, 256.0}) {
      report.measurements.push_back(throughput(label, callers, {1}));
      report.measurements.push_back(throughput(label, callers, {1}, Who::by_hand));
    }
    std::vector<std::string> budgets;
    const Table table = ratios_table(report);
    for (const Cell& each : table.rows.at(0).cells) budgets.push_back(each.note);
    EXPECT_EQ(budgets, row.budgets) << label;
  }
}

}  // namespace
}  // namespace dlock::bench

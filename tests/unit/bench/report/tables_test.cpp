// Results, units, tables of them, and texts for terminals.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <sstream>
#include <string>
#include <tuple>

#include "bench/report/report.hpp"
#include "bench/report/result.hpp"
#include "bench/report/tables.hpp"
#include "bench/report/units.hpp"
#include "tests/unit/bench/report/sample.hpp"

namespace dlock::bench {
namespace {

struct QuantityRow {
  double value;
  const char* unit;
  const char* text;
};

constexpr double nan = std::numeric_limits<double>::quiet_NaN();

const QuantityRow quantity_rows[] = {
    {0, "", "0"},
    {0.00002, "", "2e-05"},
    {0.0123, "", "0.012"},
    {1, "", "1.00"},
    {9.996, "", "10.0"},
    {12.34, "", "12.3"},
    {-12.34, "", "-12.3"},
    {99.96, "", "100"},
    {1234.5, "", "1234"},
    {0.5, "us", "0.500 µs"},
    {999.4, "us", "999 µs"},
    {999.7, "us", "1.00 ms"},
    {1304, "us", "1.30 ms"},
    {2e6, "us", "2.00 s"},
    {3600e6, "us", "3600 s"},
    {512, "1/s", "512 /s"},
    {84'213, "1/s", "84.2 k/s"},
    {1.4e6, "1/s", "1.40 M/s"},
    {1430, "B", "1.43 kB"},
    {12, "%", "12.0 %"},
    {nan, "us", "-"},
    {std::numeric_limits<double>::infinity(), "", "-"},
};

TEST(UnitsTest, Quantity_HasThreeDigitsAndTheUnitThatFits) {
  for (const auto& [value, unit, text] : quantity_rows) EXPECT_EQ(quantity_text(value, unit), text);
  EXPECT_EQ(round_text(200, "us"), "200 µs");
  EXPECT_EQ(round_text(1000, "us"), "1 ms");
  EXPECT_EQ(round_text(0.5, "us"), "0.5 µs");
}

TEST(UnitsTest, CountsAndDurations_HaveTheirUnits) {
  EXPECT_EQ(plain_units("p50 45.1 µs  p99 1.30 ms  max 9.00 µs"), "p50 45.1 us  p99 1.30 ms  max 9.00 us");
  EXPECT_EQ(count_text(1, "waiter"), "1 waiter");
  EXPECT_EQ(count_text(256, "waiter"), "256 waiters");
  EXPECT_EQ(count_text(1000, ""), "1000");
  EXPECT_EQ(count_text(10'000, "caller"), "10 000 callers");
  EXPECT_EQ(count_text(1'234'567, ""), "1 234 567");
  EXPECT_EQ(duration_text(59.4), "59 s");
  EXPECT_EQ(duration_text(1085), "18 min 5 s");
  EXPECT_EQ(duration_text(7260), "2 h 1 min");
}

TEST(UnitsTest, NameOfAMeasurement_HasItsParameters) {
  EXPECT_EQ(name_of(latency("file", {})), "latency");
  EXPECT_EQ(name_of(latency("file", {}, Who::by_hand)), "latency, by hand");
  const std::pair<Parameters, const char*> rows[] = {
      {{{"callers", 64}}, "x, 64 callers"},
      {{{"outstanding", 10'000}}, "x, 10 000 under way"},
      {{{"round_trip_ms", 5}, {"waiters", 8}}, "x, 5 ms round trip, 8 waiters"},
      {{{"callers", 64}, {"names", 1000}}, "x, 64 callers, 1000 names"},
      {{{"callers", 8}, {"reads", 95}}, "x, 8 callers, 95 % reads"},
      {{{"readers", 8}}, "x, a writer among 8 readers"},
      {{{"callers", 64}, {"permits", 4}}, "x, 64 callers, 4 permits"},
      {{{"held", 1000}}, "x, 1000 names held"},
      {{{"rate", 100}}, "x, 100 arrivals/s"},
      {{{"colour", 3}}, "x, colour 3"},
  };
  for (const auto& [parameters, name] : rows) EXPECT_EQ(name_of("x", parameters), name);
}

TEST(UnitsTest, TextForATerminal_HasNoControlCharacters) {
  EXPECT_EQ(printable("a\x1b[2Jb\nc\x7f"), "a [2Jb c ");
  EXPECT_EQ(printable("a\xC2\x9B"
                      "2Jb\xC2\xA7"),
            "a 2Jb\xC2\xA7");
}

TEST(ResultTest, Figure_HasTheMedianAndRangeOfItsNumbers) {
  const double infinity = std::numeric_limits<double>::infinity();
  for (const auto& [repeats, median, lowest, highest] : std::vector<std::tuple<std::vector<double>, int, int, int>>{
           {{5, 1, 9}, 5, 1, 9}, {{nan, 4, infinity, 2, nan}, 3, 2, 4}, {{}, 0, 0, 0}}) {
    const Figure figure = lower("p50", repeats);
    EXPECT_EQ(figure.median(), median);
    EXPECT_EQ(figure.lowest(), lowest);
    EXPECT_EQ(figure.highest(), highest);
  }
}

TEST(ResultTest, Measurement_IsFoundByScenarioServiceAndParameters) {
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

TEST(ResultTest, MedianOfNothing_IsAbsent) {
  const Measurement some = latency("file", {3, 1, 2});
  EXPECT_EQ(median_of(&some, figure::p50), 2);
  EXPECT_EQ(median_of(&some, figure::p99), std::nullopt);
  EXPECT_EQ(median_of(nullptr, figure::p50), std::nullopt);
  const Measurement none = latency("file", {std::numeric_limits<double>::quiet_NaN()});
  EXPECT_EQ(median_of(&none, figure::p50), std::nullopt);
}

TEST(ResultTest, Labels_AreOfAllKnownAndMeasuredServices) {
  Report report;
  report.services = {service("file", ""), service("etcd", "")};
  report.measurements = {latency("redis queue", {1}), latency("file", {1}), latency("redis queue", {1})};
  EXPECT_EQ(report.labels(), (std::vector<std::string>{"file", "etcd", "redis queue"}));
  EXPECT_EQ(report.service("etcd"), &report.services[1]);
  EXPECT_EQ(report.service("redis queue"), nullptr);
}

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

TEST(OverviewTest, Columns_AreOfWhatWasMeasuredNearby) {
  const Table table = overview_table(of_three_services(
      {measurement(scenario::latency, "redis queue", {{parameter::round_trip_ms, 5}}, {lower(figure::p50, {9000})}),
       latency("redis queue", {60}), hand_off("redis queue", 8, 90)}));
  std::vector<std::string> columns;
  for (const Table::Column& each : table.columns) columns.push_back(each.name);
  EXPECT_THAT(columns, ElementsAre("free lock, p50", "hand-off, 8 waiters", "lost, in a crash", "lost, in a failover"));
  EXPECT_EQ(table.rows.at(1).cells.at(0).text, "60.0 µs");
}

TEST(RatiosTest, ServiceWithAFloor_HasRatios) {
  EXPECT_THAT(
      lines_of(of_three_services(
          {latency("memory queue", {1}), latency("redis queue", {12}), latency("redis queue", {10}, Who::by_hand),
           throughput("redis queue", 64, {300}), throughput("redis queue", 64, {100}, Who::by_hand),
           throughput("zookeeper sequential", 8, {10}), throughput("zookeeper sequential", 8, {5}, Who::by_hand)})),
      ElementsAre("redis queue, latency: 1.20 <= 0.85!", "zookeeper sequential, 8 callers: 2.00",
                  "redis queue, 64 callers: 3.00 >= 1.50"));
}

TEST(RatiosTest, AsynchronousCalls_AreComparedWithAsManyCallers) {
  EXPECT_THAT(lines_of(of_three_services(
                  {under_way("redis queue", 64, {150}, {6}), under_way("redis queue", 10'000, {400}, {5}),
                   under_way("zookeeper sequential", 64, {150}, {6}), throughput("redis queue", 64, {200}),
                   throughput("redis queue", 64, {100}, Who::by_hand)})),
              ElementsAre("redis queue, 64 callers: 2.00 >= 1.50", "redis queue, 64 async.: 1.50 >= 1.80!",
                          "redis queue, 64 async., CPU: 6.00 µs <= 7.00 µs"));
}

TEST(RatiosTest, OpenLoop_HasNoBudgetAndDistanceNoRatio) {
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
TEST(RatiosTest, Ratio_IsTheMedianOfTheRatiosOfRepeats) {
  EXPECT_THAT(lines_of(of_three_services(
                  {latency("memory queue", {10, 2, 30, 1000}), latency("memory queue", {2, 1, 10}, Who::by_hand)})),
              ElementsAre("memory queue, latency: 3.00"));
}

TEST(RatiosTest, FloorOfZero_HasNoRatio) {
  EXPECT_THAT(lines_of(of_three_services({latency("memory queue", {2}), latency("memory queue", {0}, Who::by_hand),
                                          latency("redis queue", {}), latency("redis queue", {1}, Who::by_hand)})),
              ElementsAre());
}

TEST(RatiosTest, MissedBudget_IsJudgedByTheDigitsShown) {
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
TEST(RatiosTest, Service_HasItsBudgets) {
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

using testing::HasSubstr;
using testing::Not;

Report small_report() {
  Report report;
  report.services = {service("redis", "queue"), service("file", "")};
  report.measurements = {
      measurement(scenario::latency, "redis queue", {}, {lower(figure::p50, {61.2}), lower(figure::p99, {1304})}),
      latency("redis queue", {40}, Who::by_hand),
      throughput("redis queue", 8, {84'213}),
      throughput("redis queue", 8, {80'000}, Who::by_hand),
      hand_off("redis queue", 2, 90),
      hand_off("redis queue", 256, 92),
      hand_off("file", 2, 38),
      throughput("file", 1, {500})};
  return report;
}

TEST(TextTest, Service_HasALine) {
  EXPECT_THAT(to_text(small_report()),
              testing::StartsWith("             free lock  free lock  throughput   hand-off     hand-off\n"
                                  "service            p50        p99   8 callers  2 waiters  256 waiters\n"
                                  "redis queue    61.2 us    1.30 ms    84.2 k/s    90.0 us      92.0 us\n"
                                  "file                 -          -   500 /s @1    38.0 us   38.0 us @2\n"));
}

TEST(TextTest, MissedBudget_HasAMark) {
  EXPECT_THAT(to_text(small_report()), HasSubstr("\n"
                                                 "ratio to by hand  latency   8 callers\n"
                                                 "redis queue          1.53!       1.05\n"
                                                 "  budget          <= 0.85     >= 1.00\n"
                                                 "! misses the performance budget\n"));
  Report report = small_report();
  report.measurements[1].figures[0].repeats = {80};
  EXPECT_THAT(to_text(report), Not(HasSubstr("!")));
}

TEST(TextTest, SharedLocks_HaveATable) {
  Report report = small_report();
  EXPECT_THAT(to_text(report), Not(HasSubstr("sharing")));
  report.services.push_back(service("zookeeper", "sequential"));
  for (Measurement each : {throughput("redis queue", {{"reads", 95}, {"callers", 8}}, {84'213}),
                           writers_wait("redis queue", {61.2}, {1304}),
                           throughput("zookeeper sequential", {{"reads", 95}, {"callers", 8}}, {500}),
                           throughput("zookeeper sequential", {{"permits", 4}, {"callers", 64}}, {700})}) {
    report.measurements.push_back(std::move(each));
  }
  EXPECT_THAT(to_text(report), HasSubstr("\n"
                                         "sharing               95 % reads  writer p50  writer p99   4 permits\n"
                                         "service                8 callers   8 readers   8 readers  64 callers\n"
                                         "redis queue             84.2 k/s     61.2 us     1.30 ms           -\n"
                                         "zookeeper sequential      500 /s           -           -      700 /s\n"));
}

TEST(TextTest, Problems_AreListedWithoutControlCharacters) {
  Report report = small_report();
  report.problems = {{"zookeeper", "", "connection\nrefused"}, {"file", "recovery", "\x1b[2J"}};
  EXPECT_THAT(to_text(report), HasSubstr("\nNot measured:\n"
                                         "  zookeeper: connection refused\n"
                                         "  file, recovery:  [2J\n"));
}

TEST(TextTest, QuickOrInterruptedRun_IsNoted) {
  Report report = small_report();
  EXPECT_THAT(to_text(report), Not(HasSubstr("quick")));
  EXPECT_THAT(to_text(report), Not(HasSubstr("nterrupted")));
  report.quick = true;
  report.complete = false;
  EXPECT_THAT(to_text(report), HasSubstr("A quick run"));
  EXPECT_THAT(to_text(report), HasSubstr("Interrupted"));
}

TEST(TextTest, FullRun_FitsATerminal) {
  std::istringstream lines(to_text(golden_report()));
  std::size_t count = 0;
  for (std::string line; std::getline(lines, line); ++count) EXPECT_LE(line.size(), 110U) << line;
  EXPECT_GT(count, 20U);
  EXPECT_EQ(to_text({}), "Nothing was measured.\n");
}

}  // namespace
}  // namespace dlock::bench

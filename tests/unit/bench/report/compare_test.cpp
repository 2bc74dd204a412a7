#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "bench/report/figures.hpp"
#include "bench/report/report.hpp"
#include "tests/unit/bench/report/sample.hpp"

namespace dlock::bench {
namespace {

using testing::HasSubstr;
using testing::Not;

Report report_with(std::vector<Measurement> measurements) {
  Report report;
  report.started = "2026-11-22T10:00:00Z";
  report.services = {service("redis", "queue"), service("file", "")};
  report.measurements = std::move(measurements);
  return report;
}

Comparison compare_latency(std::vector<double> before, std::vector<double> after) {
  return compare(report_with({latency("redis queue", std::move(before))}),
                 report_with({latency("redis queue", std::move(after))}));
}

constexpr const char* no_change = "Nothing changed beyond the noise.";

TEST(CompareTest, SameReport_HasNotChanged) {
  const Comparison comparison = compare(golden_report(), golden_report());
  EXPECT_FALSE(comparison.slower);
  EXPECT_EQ(comparison.text,
            "before: 2026-11-22T10:00:00Z\n"
            "after:  2026-11-22T10:00:00Z\n"
            "warning: with 3 repeats chance alone may move one figure in 10\n"
            "\n"
            "Nothing changed beyond the noise.\n");
}

struct ChangeRow {
  std::vector<double> before;
  std::vector<double> after;
  std::string verdict;  // empty: nothing changed beyond the noise
  std::string changes = {};
};

const ChangeRow latency_rows[] = {
    {{100, 110, 130}, {128, 180, 200}, ""},  // the ranges overlap
    {{100, 100, 100}, {105, 105, 105}, ""},  // no more than five percent
    {{100, 100, 100}, {106, 106, 106}, "worse ", "   100 us ->    106 us    +6 %"},
    {{100, 101, 102}, {150, 151, 152}, "worse ", "   101 us ->    151 us   +50 %"},
    {{200, 201, 202}, {100, 101, 102}, "better", "   201 us ->    101 us   -50 %"},
    {{0, 0}, {5, 6}, "worse ", "     0 us ->   5.50 us"},
};

const ChangeRow throughput_rows[] = {
    {{100, 101}, {200, 201}, "better", "   100 /s ->    200 /s  +100 %"},
    {{200, 201}, {100, 101}, "worse ", "   200 /s ->    100 /s   -50 %"},
};

TEST(CompareTest, DistantRangesAndMedians_AreAChange) {
  const auto expect = [](const ChangeRow& row, const Comparison& comparison, const std::string& name) {
    EXPECT_EQ(comparison.slower, row.verdict == "worse ") << row.changes;
    EXPECT_THAT(comparison.text, HasSubstr(row.verdict.empty() ? std::string(no_change)
                                                               : "\nredis queue\n  " + row.verdict + "  " + name +
                                                                     std::string(46 - name.size(), ' ') + row.changes));
  };
  for (const ChangeRow& row : latency_rows) expect(row, compare_latency(row.before, row.after), "latency, p50");
  for (const ChangeRow& row : throughput_rows) {
    const auto of = [](const std::vector<double>& repeats) {
      return report_with({throughput("redis queue", 64, repeats)});
    };
    expect(row, compare(of(row.before), of(row.after)), "throughput, 64 callers, throughput");
  }
}

TEST(CompareTest, FigureThatIsNeitherGoodNorBad_IsLeftOut) {
  const auto samples = [](double count) {
    return report_with({measurement("latency", "file", {}, {{"samples", "", Better::neither, {count}}})});
  };
  EXPECT_THAT(compare(samples(10), samples(1000)).text, HasSubstr(no_change));
}

TEST(CompareTest, SlowerFloor_IsShownAndDoesNotCount) {
  const Comparison comparison = compare(report_with({latency("file", {10, 11}, Who::by_hand)}),
                                        report_with({latency("file", {20, 21}, Who::by_hand)}));
  EXPECT_THAT(comparison.text, HasSubstr("worse   latency, by hand, p50"));
  EXPECT_FALSE(comparison.slower);
}

TEST(CompareTest, OtherParameters_AreOtherMeasurements) {
  const Comparison comparison =
      compare(report_with({throughput("redis queue", 8, {100})}), report_with({throughput("redis queue", 64, {10})}));
  EXPECT_FALSE(comparison.slower);
  EXPECT_THAT(comparison.text, HasSubstr("\nMeasured only before:\n  redis queue: throughput, 8 callers\n"));
  EXPECT_THAT(comparison.text, HasSubstr("\nMeasured only after:\n  redis queue: throughput, 64 callers\n"));
}

TEST(CompareTest, DifferentLease_IsNotCompared) {
  const auto with_lease = [](double lease, double taken) {
    Measurement measurement = latency("redis queue", {taken, taken, taken});
    measurement.figures.push_back({.name = figure::lease, .unit = "us", .repeats = {lease, lease, lease}});
    return report_with({measurement});
  };
  const Comparison comparison = compare(with_lease(2e6, 100), with_lease(4e6, 300));
  EXPECT_FALSE(comparison.slower);
  EXPECT_THAT(comparison.text, HasSubstr("warning: redis queue: latency is not compared, because the lease differs: "
                                         "2.00 s -> 4.00 s\n"));
  EXPECT_TRUE(compare(with_lease(2e6, 100), with_lease(2e6, 300)).slower);
}

TEST(CompareTest, FigureOfOneReportOnly_IsListed) {
  Report after = report_with({latency("file", {1})});
  after.measurements[0].figures.push_back(lower("p99", {2}));
  EXPECT_THAT(compare(report_with({latency("file", {1})}), after).text,
              HasSubstr("\nMeasured only after:\n  file: latency, p99\n"));
}

TEST(CompareTest, FewRepeats_HaveAWarning) {
  EXPECT_THAT(compare_latency({1, 2}, {1, 2}).text,
              HasSubstr("warning: with 2 repeats chance alone may move one figure in 3"));
  EXPECT_THAT(compare_latency({1, 2, 3}, {1, 2, 3, 4}).text,
              HasSubstr("with 3 repeats chance alone may move one figure in 10\n"));
  EXPECT_THAT(compare_latency({1, 2, 3, 4, 5}, {1, 2, 3, 4, 5}).text, Not(HasSubstr("chance")));
}

TEST(CompareTest, OtherEnvironment_HasAWarning) {
  Report before = report_with({});
  Report after = report_with({});
  before.environment = {{"processor", "EPYC"}, {"revision", "abc"}, {"kernel", "6.1"}};
  after.environment = {{"processor", "Xeon"}, {"revision", "def"}, {"kernel", "6.1"}, {"memory", "8 GiB"}};
  before.services[0].settings = {{"appendonly", "no"}};
  after.services[0].settings = {{"appendonly", "yes"}};
  after.quick = true;
  const std::string text = compare(before, after).text;
  EXPECT_THAT(text, HasSubstr("warning: only one of them is a quick run\n"));
  EXPECT_THAT(text, HasSubstr("warning: processor: EPYC -> Xeon\n"));
  EXPECT_THAT(text, HasSubstr("warning: memory: unknown -> 8 GiB\n"));
  EXPECT_THAT(text, HasSubstr("warning: redis queue: appendonly: no -> yes\n"));
  EXPECT_THAT(text, HasSubstr("\nrevision: abc -> def\n"));
  EXPECT_THAT(text, Not(HasSubstr("kernel")));
}

}  // namespace
}  // namespace dlock::bench

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>
#include <string>

#include "bench/report/report.hpp"
#include "tests/unit/bench/report/sample.hpp"

namespace dlock::bench {
namespace {

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

TEST(Text, HasALineForEachServiceWithDashesForWhatIsMissing) {
  EXPECT_THAT(to_text(small_report()),
              testing::StartsWith("             free lock  free lock  throughput   hand-off     hand-off\n"
                                  "service            p50        p99   8 callers  2 waiters  256 waiters\n"
                                  "redis queue    61.2 us    1.30 ms    84.2 k/s    90.0 us      92.0 us\n"
                                  "file                 -          -   500 /s @1    38.0 us   38.0 us @2\n"));
}

TEST(Text, HasTheRatiosBesideTheBudgetAndMarksWhatIsMissed) {
  EXPECT_THAT(to_text(small_report()), HasSubstr("\n"
                                                 "ratio to by hand  latency   8 callers\n"
                                                 "redis queue          1.53!       1.05\n"
                                                 "  budget          <= 0.85     >= 1.00\n"
                                                 "! misses the performance budget\n"));
}

TEST(Text, HasALineForEachServiceWithLocksThatSeveralHold) {
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

TEST(Text, NoMarkWhereTheBudgetIsMet) {
  Report report = small_report();
  report.measurements[1].figures[0].repeats = {80};
  EXPECT_THAT(to_text(report), Not(HasSubstr("!")));
}

TEST(Text, ListsProblemsWithoutControlCharacters) {
  Report report = small_report();
  report.problems = {{"zookeeper", "", "connection\nrefused"}, {"file", "recovery", "\x1b[2J"}};
  EXPECT_THAT(to_text(report), HasSubstr("\nNot measured:\n"
                                         "  zookeeper: connection refused\n"
                                         "  file, recovery:  [2J\n"));
}

TEST(Text, SaysWhatIsSpecialAboutTheRun) {
  Report report = small_report();
  EXPECT_THAT(to_text(report), Not(HasSubstr("quick")));
  EXPECT_THAT(to_text(report), Not(HasSubstr("nterrupted")));
  report.quick = true;
  report.complete = false;
  EXPECT_THAT(to_text(report), HasSubstr("A quick run"));
  EXPECT_THAT(to_text(report), HasSubstr("Interrupted"));
}

TEST(Text, NothingMeasuredIsATextToo) {
  EXPECT_EQ(to_text({}), "Nothing was measured.\n");
}

TEST(Text, AFullRunFitsATerminal) {
  std::istringstream lines(to_text(golden_report()));
  std::size_t count = 0;
  for (std::string line; std::getline(lines, line); ++count) EXPECT_LE(line.size(), 110U) << line;
  EXPECT_GT(count, 20U);
}

}  // namespace
}  // namespace dlock::bench

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>
#include <string>

#include "bench/report/report.hpp"
#include "bench/report/text_table.hpp"
#include "tests/unit/bench/report/sample.hpp"
#include "tests/unit/bench/report/synthetic_report.hpp"

namespace dlock::bench {
namespace {

using testing::HasSubstr;
using testing::Not;

// The first line that begins so, or nothing.
std::string line_of(const std::string& text, const std::string& start, int which = 0) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with(start) && which-- == 0) return line;
  }
  return {};
}

Report small_report() {
  Report report;
  report.services = {service("redis", "queue"), service("file", "")};
  report.measurements = {
      measurement(scenario::latency, "redis queue", {}, {lower(figure::p50, {61.2}), lower(figure::p99, {1304})}),
      latency("redis queue", {51}, Who::same_requests),
      latency("redis queue", {40}, Who::by_hand),
      throughput("redis queue", 8, {84'213}),
      throughput("redis queue", 8, {80'000}, Who::by_hand),
      throughput("file", 1, {500})};
  return report;
}

TEST(Text, HasALineForEachServiceWithDashesForWhatIsMissing) {
  const std::string text = to_text(small_report());
  EXPECT_EQ(line_of(text, "service"),
            "service          p50        p99   8 callers   waiters   waiters  a hand-off       p50");
  EXPECT_EQ(line_of(text, "redis queue"),
            "redis queue  61.2 us    1.30 ms    84.2 k/s         -         -           -         -");
  EXPECT_EQ(line_of(text, "file"),
            "file               -          -   500 /s @1         -         -           -         -");
}

TEST(Text, HasTheRatiosBesideTheBudgetAndMarksWhatIsMissed) {
  const std::string text = to_text(small_report());
  EXPECT_THAT(text, HasSubstr("\n"
                              "ratio to by hand  latency   1 caller   8 callers\n"
                              "redis queue          1.53!         -        1.05\n"
                              "  budget          <= 0.85                >= 1.00\n"
                              "! misses the performance budget\n"));
}

TEST(Text, HasTheRatiosToTheSameRequestsByThemselves) {
  EXPECT_THAT(to_text(small_report()), HasSubstr("\n"
                                                 "to same requests  latency   1 caller   8 callers\n"
                                                 "redis queue          1.20          -           -\n"));
}

TEST(Text, HasALineForEachServiceWithLocksThatSeveralHold) {
  Report report = small_report();
  EXPECT_THAT(to_text(report), Not(HasSubstr("sharing")));
  report.services.push_back(service("zookeeper", "sequential"));
  for (Measurement each :
       {sharing("redis queue", 95, 8, {84'213}), writers_wait("redis queue", {61.2}, {1304}),
        sharing("zookeeper sequential", 95, 8, {500}), permits("zookeeper sequential", 4, 64, {700})}) {
    report.measurements.push_back(std::move(each));
  }
  EXPECT_THAT(to_text(report), HasSubstr("\n"
                                         "sharing               95 % reads  writer, p50  writer, p99   4 permits\n"
                                         "service                8 callers    8 readers    8 readers  64 callers\n"
                                         "redis queue             84.2 k/s      61.2 us      1.30 ms           -\n"
                                         "zookeeper sequential      500 /s            -            -      700 /s\n"));
}

TEST(Text, NoMarkWhereTheBudgetIsMet) {
  Report report = small_report();
  report.measurements[2].figures[0].repeats = {80};
  EXPECT_THAT(to_text(report), Not(HasSubstr("!")));
}

TEST(Text, ListsProblems) {
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
  std::istringstream lines(to_text(synthetic_report()));
  std::size_t count = 0;
  for (std::string line; std::getline(lines, line); ++count) EXPECT_LE(width_of(line), 110U) << line;
  EXPECT_GT(count, 14U + 11U + 7U);
}

}  // namespace
}  // namespace dlock::bench

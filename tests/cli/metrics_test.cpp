#include "cli/metrics.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

#include "torture/rig/scratch_directory.hpp"

namespace dlock::cli {
namespace {

using namespace std::chrono_literals;
using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;
using Ended = Account::Result;

const std::chrono::system_clock::time_point noon{1763719872500ms};

Account ran(int status) {
  return {.result = Ended::ran, .status = status, .command_status = status, .waited = 250ms, .held = 1500ms};
}

std::string text_of(const Account& account, const std::string& earlier = "", const std::string& name = "job") {
  return metrics_text(account, {name}, LockKind::lock, noon, earlier);
}

// The value of a metric of the lock "job".
std::string value(const std::string& text, const std::string& metric, const std::string& label = "") {
  const std::string line = "\ndlock_" + metric + "{name=\"job\",kind=\"lock\"" + label + "} ";
  const auto at = text.find(line);
  if (at == std::string::npos) return "none";
  const auto begin = at + line.size();
  return text.substr(begin, text.find('\n', begin) - begin);
}

constexpr const char* last_success = "last_success_timestamp_seconds";

TEST(Metrics, SayWhatBecameOfTheLastRun) {
  struct Case {
    Account account;
    std::string result, exit_status, hold_seconds;
    bool success;
  };
  const std::vector<Case> cases{
      {ran(0), "ran", "0", "1.5", true},
      {ran(3), "ran", "3", "1.5", false},
      {{.result = Ended::conflict, .status = 75}, "conflict", "75", "none", false},
      {{.result = Ended::conflict, .status = 0}, "conflict", "0", "none", false},  // --conflict-exit-code 0
      {{.result = Ended::interrupted, .status = 143}, "interrupted", "143", "none", false},
      {{.result = Ended::failed, .status = 69}, "failed", "69", "none", false},
      {{.result = Ended::lost, .status = 79, .command_status = 143, .held = 1s}, "lost", "79", "1", false},
      {{.result = Ended::lost, .status = 0, .command_status = 0, .held = 1s}, "lost", "0", "1", true},
      {{.result = Ended::ran, .status = 0, .held = 1s}, "ran", "0", "1", true},  // dlock hold
  };
  for (const Case& each : cases) {
    const std::string text = text_of(each.account, text_of(ran(4)));
    SCOPED_TRACE(each.result + " " + each.exit_status);
    EXPECT_EQ(value(text, "last_result", ",result=\"" + each.result + "\""), "1");
    EXPECT_EQ(value(text, "last_exit_status"), each.exit_status);
    EXPECT_EQ(value(text, "last_hold_seconds"), each.hold_seconds);
    EXPECT_EQ(value(text, last_success), each.success ? "1763719872.5" : "none");
  }
}

TEST(Metrics, KeepTheTimeOfTheLastSuccess) {
  const std::string failed = metrics_text(ran(1), {"new", "job"}, LockKind::lock, noon + 1h, text_of(ran(0)));
  EXPECT_EQ(value(failed, last_success), "1763719872.5");
  EXPECT_THAT(failed, Not(HasSubstr("dlock_last_success_timestamp_seconds{name=\"new\"")));
  const std::string later = metrics_text(ran(0), {"job"}, LockKind::lock, noon + 1h, failed);
  EXPECT_EQ(value(later, last_success), "1763723472.5");
  EXPECT_EQ(metrics_text(ran(1), {"job"}, LockKind::election, noon, later).find(last_success), std::string::npos);
}

TEST(Metrics, AreOfEachName) {
  EXPECT_THAT(metrics_text(ran(0), {"a", "b"}, LockKind::read_write, noon, ""),
              HasSubstr("# TYPE dlock_last_exit_status gauge\n"
                        "dlock_last_exit_status{name=\"a\",kind=\"read-write\"} 0\n"
                        "dlock_last_exit_status{name=\"b\",kind=\"read-write\"} 0\n"));
}

TEST(Metrics, EscapeNames) {
  const std::string name = "a\"b\\c\nd}e{f";
  const std::string escaped = R"(dlock_last_success_timestamp_seconds{name="a\"b\\c\nd}e{f",kind="lock"} 1763719872.5)";
  const std::string text = text_of(ran(0), "", name);
  EXPECT_THAT(text, HasSubstr(escaped));
  EXPECT_THAT(text_of(ran(1), text, name), HasSubstr(escaped));
}

TEST(Metrics, OfABrokenTextKeepNothing) {
  const std::string front = "#\ndlock_last_success_timestamp_seconds{name=\"job\",kind=\"lock\"";
  for (const std::string end : {"} nan", "} inf", "} 1e999", "} -1", "} x", "} ", "}", ""}) {
    EXPECT_EQ(text_of(ran(1), front + end), text_of(ran(1))) << end;
  }
  EXPECT_EQ(text_of(ran(1), std::string(1000, '\0')), text_of(ran(1)));
  EXPECT_EQ(value(text_of(ran(1), front + "} 5"), last_success), "5");
}

class MetricsFileTest : public testing::Test {
 protected:
  [[nodiscard]] std::string text() const {
    std::ifstream file(path_);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  [[nodiscard]] std::ptrdiff_t files() const {
    return std::distance(std::filesystem::directory_iterator(directory_.path()), std::filesystem::directory_iterator());
  }

  dlock::rig::ScratchDirectory directory_;
  const std::string path_ = directory_.path() + "/job.prom";
};

TEST_F(MetricsFileTest, IsWholeWhereManyReplaceIt) {
  constexpr int updates = 50;
  const MetricsFile file(path_);
  file.write(ran(0), {"job"}, LockKind::lock);
  const auto update = [&] {
    for (int i = 0; i < updates; ++i) file.write(ran(1), {"job"}, LockKind::lock);
  };
  {
    const std::jthread one(update);
    const std::jthread other(update);
    for (int i = 0; i < updates; ++i) {
      const std::string found = text();
      EXPECT_THAT(found, AllOf(StartsWith("# HELP dlock_last_exit_status "), EndsWith("\n")));
      EXPECT_NE(value(found, last_success), "none");
    }
  }
  EXPECT_EQ(value(text(), "last_exit_status"), "1");
  EXPECT_EQ(files(), 1) << "something else was left in the directory";
}

}  // namespace
}  // namespace dlock::cli

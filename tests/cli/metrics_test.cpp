#include "cli/metrics.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

#include "cli/arguments.hpp"
#include "cli/output.hpp"
#include "cli/unique_fd.hpp"
#include "torture/rig/scratch_directory.hpp"

namespace dlock::cli {
namespace {

using namespace std::chrono_literals;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using Ended = Account::Result;

const std::chrono::system_clock::time_point noon{1763719872500ms};

Account ran(int status) {
  return {.result = Ended::ran, .status = status, .command_status = status, .waited = 250ms, .held = 1500ms};
}

std::string text_of(const std::vector<Account>& accounts, const std::string& name = "job") {
  Metrics metrics;
  for (const Account& account : accounts) metrics.add(account, {name}, LockKind::lock, noon);
  return metrics.text();
}

TEST(Metrics, AreWhatPrometheusReads) {
  EXPECT_THAT(text_of({ran(0)}), HasSubstr("# HELP dlock_wait_seconds_total Time spent waiting for the lock.\n"
                                           "# TYPE dlock_wait_seconds_total counter\n"
                                           "dlock_wait_seconds_total{name=\"job\",kind=\"lock\"} 0.25\n"));
  EXPECT_THAT(text_of({ran(0)}), HasSubstr("# TYPE dlock_last_success_timestamp_seconds gauge\n"
                                           "dlock_last_success_timestamp_seconds{name=\"job\",kind=\"lock\"} "
                                           "1763719872.5\n"));
}

// The value of a metric of the lock "job".
std::string value(const std::string& text, const std::string& metric) {
  const std::string line = "\ndlock_" + metric + "{name=\"job\",kind=\"lock\"} ";
  const auto at = text.find(line);
  if (at == std::string::npos) return "none";
  const auto begin = at + line.size();
  return text.substr(begin, text.find('\n', begin) - begin);
}

TEST(Metrics, CountWhatBecameOfEachAttempt) {
  struct Case {
    Account account;
    std::string runs, failed_runs, conflicts, errors, losses, last_exit_status;
    bool success;
  };
  const std::vector<Case> cases{
      {ran(0), "1", "0", "0", "0", "0", "0", true},
      {ran(3), "1", "1", "0", "0", "0", "3", false},
      {{.result = Ended::conflict, .status = 75}, "0", "0", "1", "0", "0", "75", false},
      {{.result = Ended::conflict, .status = 0}, "0", "0", "1", "0", "0", "0", false},  // --conflict-exit-code 0
      {{.result = Ended::interrupted, .status = 143}, "0", "0", "0", "0", "0", "143", false},
      {{.result = Ended::failed, .status = 69}, "0", "0", "0", "1", "0", "69", false},
      {{.result = Ended::lost, .status = 79, .command_status = 143}, "1", "1", "0", "0", "1", "79", false},
      {{.result = Ended::lost, .status = 0, .command_status = 0}, "1", "0", "0", "0", "1", "0", true},
      {{.result = Ended::ran, .status = 0}, "1", "0", "0", "0", "0", "0", true},  // dlock hold
  };
  for (const Case& each : cases) {
    const std::string text = text_of({each.account});
    SCOPED_TRACE(std::string(to_string(each.account.result)) + " " + std::to_string(each.account.status));
    EXPECT_EQ(value(text, "waits_total"), "1");
    EXPECT_EQ(value(text, "runs_total"), each.runs);
    EXPECT_EQ(value(text, "failed_runs_total"), each.failed_runs);
    EXPECT_EQ(value(text, "conflicts_total"), each.conflicts);
    EXPECT_EQ(value(text, "errors_total"), each.errors);
    EXPECT_EQ(value(text, "losses_total"), each.losses);
    EXPECT_EQ(value(text, "last_exit_status"), each.last_exit_status);
    EXPECT_EQ(value(text, "last_success_timestamp_seconds") != "none", each.success);
  }
}

TEST(Metrics, GoOnFromWhatIsThere) {
  Metrics metrics;
  EXPECT_TRUE(metrics.read(text_of({ran(0), ran(1)})));
  metrics.add({.result = Ended::conflict, .status = 75, .waited = 100ms}, {"job"}, LockKind::lock, noon + 1h);
  const std::string text = metrics.text();
  EXPECT_EQ(value(text, "runs_total"), "2");
  EXPECT_EQ(value(text, "waits_total"), "3");
  EXPECT_EQ(value(text, "conflicts_total"), "1");
  EXPECT_EQ(value(text, "wait_seconds_total"), "0.6");
  EXPECT_EQ(value(text, "hold_seconds_total"), "3");
  EXPECT_EQ(value(text, "last_success_timestamp_seconds"), "1763719872.5");
}

TEST(Metrics, OfOtherLocksStay) {
  Metrics metrics;
  EXPECT_TRUE(metrics.read(text_of({ran(0)}, "other")));
  metrics.add(ran(0), {"a", "b"}, LockKind::read_write, noon);
  EXPECT_THAT(metrics.text(), AllOf(HasSubstr("dlock_runs_total{name=\"other\",kind=\"lock\"} 1\n"),
                                    HasSubstr("dlock_runs_total{name=\"a\",kind=\"read-write\"} 1\n"),
                                    HasSubstr("dlock_runs_total{name=\"b\",kind=\"read-write\"} 1\n")));
}

TEST(Metrics, EscapeNames) {
  const std::string name = "a\"b\\c\nd}e{f";
  const std::string text = text_of({ran(0)}, name);
  EXPECT_THAT(text, HasSubstr(R"(dlock_runs_total{name="a\"b\\c\nd}e{f",kind="lock"} 1)"));
  Metrics metrics;
  EXPECT_TRUE(metrics.read(text));
  metrics.add(ran(0), {name}, LockKind::lock, noon);
  EXPECT_THAT(metrics.text(), HasSubstr(R"(dlock_runs_total{name="a\"b\\c\nd}e{f",kind="lock"} 2)"));
}

TEST(Metrics, OfABrokenTextAreWhatCanBeReadOfIt) {
  const std::string good = "dlock_runs_total{name=\"job\",kind=\"lock\"} 5\n";
  const std::vector<std::string> broken{
      "dlock_runs_total{name=\"job\",kind=\"lock\"} 7 1763719872500",
      "dlock_runs_total{name=\"job\",kind=\"lock\"} nan",
      "dlock_runs_total{name=\"job\",kind=\"lock\"} -1",
      "dlock_runs_total{name=\"job\",kind=\"lock\"} ",
      "dlock_runs_total{name=\"job\",kind=\"lock\"",
      "dlock_runs_total{name=\"job\\x\",kind=\"lock\"} 1",
      "dlock_runs_total{name=\"job\\",
      "dlock_runs_total{kind=\"lock\"} 1",
      "dlock_runs_total 1",
      "node_load1 0.5",
      std::string(1000, '\0'),
      "{",
  };
  for (const std::string& line : broken) {
    Metrics metrics;
    EXPECT_FALSE(metrics.read(line + "\n" + good)) << line;
    EXPECT_EQ(value(metrics.text(), "runs_total"), "5") << line;
    EXPECT_THAT(metrics.text(), Not(HasSubstr("node_load1")));
  }
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

TEST_F(MetricsFileTest, LosesNoCountWhereManyUpdateIt) {
  constexpr int updates = 50;
  const MetricsFile file(path_);
  const auto update = [&] {
    for (int i = 0; i < updates; ++i) file.add(ran(0), {"job"}, LockKind::lock);
  };
  {
    const std::jthread one(update);
    const std::jthread other(update);
  }
  EXPECT_EQ(value(text(), "runs_total"), std::to_string(2 * updates));
  EXPECT_EQ(files(), 1) << "something else was left in the directory";
}

// As a client of the file backend locks it.
TEST_F(MetricsFileTest, MayBeInADirectoryThatIsLocked) {
  const UniqueFd directory(::open(directory_.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  ASSERT_EQ(::flock(directory.get(), LOCK_SH), 0);
  MetricsFile(path_).add(ran(0), {"job"}, LockKind::lock);
  EXPECT_EQ(value(text(), "runs_total"), "1");
}

TEST_F(MetricsFileTest, GoesOnWhereAnEarlierOneIsBroken) {
  std::ofstream(path_) << "rubbish\n";
  flush_messages();  // of earlier tests
  testing::internal::CaptureStderr();
  MetricsFile(path_).add(ran(0), {"job"}, LockKind::lock);
  flush_messages();
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("has lines that are not dlock's"));
  EXPECT_EQ(value(text(), "runs_total"), "1");
}

TEST_F(MetricsFileTest, IsAFileInADirectoryThatCanBeWritten) {
  const std::string pipe = directory_.path() + "/pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  for (const std::string& wrong : {directory_.path(), directory_.path() + "/none/job.prom", std::string("/dev/null"),
                                   std::string("/dev/stderr"), pipe}) {
    EXPECT_THROW(MetricsFile{wrong}, UsageError) << wrong;
  }
  EXPECT_EQ(files(), 1) << "the pipe";
}

}  // namespace
}  // namespace dlock::cli

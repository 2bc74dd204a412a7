// dlock torture, as a user would run it.
#include <csignal>
#include <deque>
#include <filesystem>
#include <fstream>

#include "support/cli_test.hpp"

namespace dlock::cli::test {
namespace {

using testing::HasSubstr;
using testing::Not;

class Torture : public CliTest {
 protected:
  // With a short lease, so that little time is enough to break things and to settle.
  [[nodiscard]] std::string hasty() const { return url() + "?lease=300ms"; }
  [[nodiscard]] std::string path(const std::string& name) const { return scratch_.path() + "/" + name; }
  [[nodiscard]] Finished torture(const std::vector<std::string>& words) const {
    std::vector<std::string> command{dlock_path(), "torture"};
    command.insert(command.end(), words.begin(), words.end());
    return run(command);
  }
  // What each process noted last: where one hangs or crashes, that tells in what.
  [[nodiscard]] static std::string last_events(const std::string& history) {
    constexpr std::size_t some = 12;
    std::string text;
    for (const auto& entry : std::filesystem::directory_iterator(history)) {
      std::ifstream file(entry.path());
      std::deque<std::string> lines;
      for (std::string line; std::getline(file, line);) {
        lines.push_back(line);
        if (lines.size() > some) lines.pop_front();
      }
      text += "the end of " + entry.path().filename().string() + ":\n";
      for (const std::string& line : lines) text += "  " + line + "\n";
    }
    return text;
  }

 private:
  ScratchDirectory scratch_;
};

TEST_F(Torture, EndsWithAVerdictAndKeepsTheHistory) {
  const std::string history = path("history");
  const Finished result =
      torture({"--url", hasty(), "--minutes", "0.05", "--seed", "7", "--workers", "3", "--directory", history});
  EXPECT_EQ(result.status, 0) << result.out << result.err << last_events(history);
  EXPECT_THAT(result.out, HasSubstr("seed           7\n"));
  EXPECT_THAT(result.out, HasSubstr("holder killed"));
  EXPECT_THAT(result.out, HasSubstr("verdict        all promises were kept\n"));
  EXPECT_THAT(result.err, HasSubstr("dlock: seed 7: breaking things\n"));

  const Finished again = torture({"--check", history});
  EXPECT_EQ(again.status, 0);
  EXPECT_THAT(again.out, HasSubstr("verdict        no violation\n"));

  EXPECT_THAT(torture({"--url", url(), "--directory", history}).err, HasSubstr("is not empty"));
}

TEST_F(Torture, AViolationInAHistoryIsShown) {
  std::filesystem::create_directory(path("bad"));
  std::ofstream(path("bad") + "/rules.json")
      << R"({"slack_ns": 1, "release_ns": 1, "loss_slack_ns": 1, "recovery_ns": 1, "settled_ns": 1, "hand_over_ns": 1,
             "without": []})";
  std::ofstream(path("bad") + "/process-1.jsonl")
      << R"({"time": 1, "process": 1, "event": "asked", "acquire": 1, "lock": "x"})" << '\n'
      << R"({"time": 2, "process": 1, "event": "granted", "acquire": 1, "lock": "x", "token": 5, "until": 900})" << '\n'
      << R"({"time": 9, "process": 1, "event": "looked", "acquire": 1, "lock": "x", "yes": true})" << '\n';
  std::ofstream(path("bad") + "/process-2.jsonl")
      << R"({"time": 3, "process": 2, "event": "asked", "acquire": 1, "lock": "x"})" << '\n'
      << R"({"time": 4, "process": 2, "event": "granted", "acquire": 1, "lock": "x", "token": 6, "until": 900})" << '\n'
      << R"({"time": 5, "process": 2, "event": "looked", "acquire": 1, "lock": "x", "yes": true})" << '\n';
  const Finished result = torture({"--check", path("bad")});
  EXPECT_EQ(result.status, 1) << result.err;
  EXPECT_THAT(result.out, HasSubstr("exclusion: process 1 found lock x held after process 2 had been granted it"));
  EXPECT_THAT(result.out, HasSubstr("verdict        VIOLATED: exclusion (1)"));
}

TEST_F(Torture, WhatCannotBeTorturedIsRefusedBeforeAnythingIsBroken) {
  const auto refused = [&](const std::vector<std::string>& words, const std::string& complaint) {
    const Finished result = torture(words);
    EXPECT_EQ(result.status, 64) << complaint;
    EXPECT_THAT(result.err, HasSubstr(complaint));
    EXPECT_THAT(result.err, Not(HasSubstr("breaking")));
  };
  refused({"--url", "memory://"}, "--url: locks of memory:// are within one process");
  refused({"--url", url(), "--minutes", "0"}, "--minutes: must be a number greater than 0, not \"0\"");
  refused({"--url", url(), "--minutes", "soon"}, "--minutes");
  for (const char* kind : {"mutex", "semaphore=", "semaphore=0", "semaphore=101", "semaphore=2x", "read-write=2"}) {
    refused({"--url", url(), "--kind", kind}, "--kind: ");
  }
  refused({"--url", url(), "--workers", "1"}, "--workers: must be 2 to 64, not \"1\"");
  refused({"--url", url(), "--seed", "x"}, "--seed");
  refused({"--url", url() + "?nonsense=1"}, "nonsense");
  refused({"--check", path("nothing")}, "--check: cannot read " + path("nothing") + ": No such file or directory\n");
  refused({"--check", path("nothing"), "--minutes", "1"}, "--check and --minutes exclude each other");
  refused({"--url", url(), "--directory", "/proc/nowhere"}, "--directory: /proc/nowhere: ");
}

TEST_F(Torture, AServiceThatCannotBeReachedIsSaidWithoutThePassword) {
  const Finished result = torture({"--url", "redis://somebody:hunter2@127.0.0.1:1?connect_timeout=200ms"});
  EXPECT_EQ(result.status, 69);
  EXPECT_THAT(result.err, HasSubstr("127.0.0.1:1"));
  EXPECT_THAT(result.err + result.out, Not(HasSubstr("hunter2")));
}

TEST_F(Torture, AnInterruptionEndsTheBreakingAndWhatHappenedIsChecked) {
  const std::string history = path("interrupted");
  Process process({dlock_path(), "torture", "--url", hasty(), "--minutes", "60", "--directory", history});
  EXPECT_THAT(process.error_line(), HasSubstr("breaking things"));
  process.signal(SIGINT);
  const Finished result = process.finish();
  EXPECT_EQ(result.status, 128 + SIGINT);
  EXPECT_THAT(result.out, HasSubstr("verdict        no violation, but the run was interrupted\n"));
}

}  // namespace
}  // namespace dlock::cli::test

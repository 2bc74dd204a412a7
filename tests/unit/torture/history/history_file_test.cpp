// Histories in files, which processes write and may be killed while they do.
#include "torture/history/history_file.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "torture/rig/scratch_directory.hpp"

namespace dlock::torture {
namespace {

class HistoryFileTest : public testing::Test {
 protected:
  [[nodiscard]] std::filesystem::path path(const std::string& name) const { return directory_.path() + "/" + name; }

  void write(const std::string& name, const std::string& text) const {
    std::ofstream(path(name), std::ios::binary | std::ios::app) << text;
  }

  [[nodiscard]] std::string why_not(const std::string& name) const {
    try {
      (void)read_history(path(name));
    } catch (const std::runtime_error& e) {
      return e.what();
    }
    return "nothing";
  }

  rig::ScratchDirectory directory_;
};

Event ended(int process, int time) {
  return {.at = TimePoint(std::chrono::nanoseconds(time)), .kind = Kind::ended, .process = process};
}

TEST_F(HistoryFileTest, ComesBackAsItWasNoted) {
  {
    HistoryFile file(path("1.jsonl"));
    file.note(ended(1, 1));
    file.note(ended(1, 2));
  }
  HistoryFile(path("1.jsonl")).note(ended(1, 3));  // appends
  EXPECT_EQ(read_history(path("1.jsonl")), (std::vector{ended(1, 1), ended(1, 2), ended(1, 3)}));
}

TEST_F(HistoryFileTest, IsThereBeforeTheFileIsClosed) {
  HistoryFile file(path("1.jsonl"));
  file.note(ended(1, 1));
  EXPECT_EQ(read_history(path("1.jsonl")).size(), 1U);
}

TEST_F(HistoryFileTest, LinesOfManyThreadsStayWhole) {
  constexpr int each = 500;
  HistoryFile file(path("1.jsonl"));
  {
    std::vector<std::jthread> threads;
    for (int thread = 0; thread < 4; ++thread) {
      threads.emplace_back([&file, thread] {
        for (int i = 0; i < each; ++i) file.note(ended(thread, i));
      });
    }
  }
  EXPECT_EQ(read_history(path("1.jsonl")).size(), 4U * each);
}

TEST_F(HistoryFileTest, ATornLastLineIsDropped) {
  write("1.jsonl", to_line(ended(1, 1)) + "\n" + to_line(ended(1, 2)).substr(0, 20));
  EXPECT_EQ(read_history(path("1.jsonl")), (std::vector{ended(1, 1)}));
}

TEST_F(HistoryFileTest, ALastLineThatLacksOnlyItsEndIsTornAsWell) {
  write("1.jsonl", to_line(ended(1, 1)) + "\n" + to_line(ended(1, 2)));
  EXPECT_EQ(read_history(path("1.jsonl")), (std::vector{ended(1, 1)}));
}

TEST_F(HistoryFileTest, AnEmptyFileIsAnEmptyHistory) {
  write("1.jsonl", "");
  EXPECT_TRUE(read_history(path("1.jsonl")).empty());
}

TEST_F(HistoryFileTest, AnyOtherLineThatIsNoEventIsNamed) {
  write("1.jsonl", to_line(ended(1, 1)) + "\n" + R"({"time":1,"process":1,"event":"gone"})" + "\n");
  write("1.jsonl", to_line(ended(1, 2)) + "\n");
  EXPECT_EQ(why_not("1.jsonl"), path("1.jsonl").string() + ", line 2: unknown event \"gone\"");
  write("2.jsonl", to_line(ended(1, 1)) + "\n\n" + to_line(ended(1, 2)) + "\n");
  EXPECT_NE(why_not("2.jsonl").find("line 2: "), std::string::npos) << why_not("2.jsonl");
}

TEST_F(HistoryFileTest, AFileThatIsNoHistoryIsRefused) {
  write("1.jsonl", "#!/bin/sh\necho hello\n");
  EXPECT_NE(why_not("1.jsonl").find("line 1: "), std::string::npos) << why_not("1.jsonl");
}

TEST_F(HistoryFileTest, AFileThatIsNotThereIsAnError) {
  EXPECT_THROW((void)read_history(path("1.jsonl")), std::system_error);
  EXPECT_THROW(HistoryFile(path("nowhere/1.jsonl")), std::system_error);
}

TEST_F(HistoryFileTest, AnEventThatCannotBeWrittenIsAnError) {
  HistoryFile file("/dev/full");
  EXPECT_THROW(file.note(ended(1, 1)), std::system_error);
}

TEST_F(HistoryFileTest, HistoriesOfSeveralProcessesAreMergedInTheOrderOfTime) {
  for (const auto& event : {ended(1, 1), ended(1, 4), ended(1, 4)}) HistoryFile(path("1.jsonl")).note(event);
  for (const auto& event : {ended(2, 2), ended(2, 3), ended(2, 4), ended(2, 5)}) {
    HistoryFile(path("2.jsonl")).note(event);
  }
  write("notes.txt", "not a history");
  const std::vector<Event> merged = read_histories(directory_.path());
  ASSERT_EQ(merged.size(), 7U);
  EXPECT_TRUE(std::is_sorted(merged.begin(), merged.end(), [](const auto& a, const auto& b) { return a.at < b.at; }));
  EXPECT_EQ(merged.front(), ended(1, 1));
  EXPECT_EQ(merged.back(), ended(2, 5));
}

// Several threads of one process may write their notes in another order than that in which they took the time.
TEST_F(HistoryFileTest, OneProcessMayHaveNotedOutOfOrder) {
  for (const auto& event : {ended(1, 2), ended(1, 1)}) HistoryFile(path("1.jsonl")).note(event);
  EXPECT_EQ(read_histories(directory_.path()), (std::vector{ended(1, 1), ended(1, 2)}));
}

TEST_F(HistoryFileTest, AtOneTimeEventsOfAFileStayInTheirOrder) {
  std::vector<Event> events;
  for (int i = 0; i < 100; ++i) {
    Event event = ended(1, 7);
    event.subject = i;
    events.push_back(event);
    HistoryFile(path("1.jsonl")).note(event);
  }
  EXPECT_EQ(read_histories(directory_.path()), events);
}

TEST_F(HistoryFileTest, ADirectoryWithoutHistoriesIsAnError) {
  write("notes.txt", "not a history");
  EXPECT_THROW((void)read_histories(directory_.path()), std::runtime_error);
  EXPECT_THROW((void)read_histories(path("nowhere")), std::system_error);
}

}  // namespace
}  // namespace dlock::torture

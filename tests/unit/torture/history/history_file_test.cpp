// Histories in files, which processes write and may be killed while they do.
#include "torture/history/history_file.hpp"

#include <gtest/gtest.h>

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

TEST_F(HistoryFileTest, NotedEvents_AreReadBack) {
  {
    HistoryFile file(path("1.jsonl"));
    file.note(ended(1, 1));
    EXPECT_EQ(read_history(path("1.jsonl")).size(), 1U) << "before the file is closed";
    file.note(ended(1, 2));
  }
  HistoryFile(path("1.jsonl")).note(ended(1, 3));  // appends
  EXPECT_EQ(read_history(path("1.jsonl")), (std::vector{ended(1, 1), ended(1, 2), ended(1, 3)}));
}

TEST_F(HistoryFileTest, LinesOfManyThreads_DoNotMix) {
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

// The process was killed while it wrote.
TEST_F(HistoryFileTest, LastLineWithoutAnEnd_IsDropped) {
  write("0.jsonl", "");
  EXPECT_TRUE(read_history(path("0.jsonl")).empty());
  const std::string last = to_line(ended(1, 2));
  write("1.jsonl", to_line(ended(1, 1)) + "\n" + last.substr(0, 20));
  write("2.jsonl", to_line(ended(1, 1)) + "\n" + last);
  for (const char* name : {"1.jsonl", "2.jsonl"}) EXPECT_EQ(read_history(path(name)), (std::vector{ended(1, 1)}));
}

TEST_F(HistoryFileTest, LineThatIsNoEvent_IsNamed) {
  const std::string event = to_line(ended(1, 1)) + "\n";
  write("1.jsonl", event + R"({"time":1,"process":1,"event":"gone"})" + "\n" + event);
  EXPECT_EQ(why_not("1.jsonl"), path("1.jsonl").string() + ", line 2: unknown event \"gone\"");
  write("2.jsonl", event + "\n" + event);
  EXPECT_NE(why_not("2.jsonl").find("line 2: "), std::string::npos) << why_not("2.jsonl");
  write("3.jsonl", "#!/bin/sh\necho hello\n");
  EXPECT_NE(why_not("3.jsonl").find("line 1: "), std::string::npos) << why_not("3.jsonl");
}

TEST_F(HistoryFileTest, FileThatCannotBeUsed_IsAnError) {
  EXPECT_THROW((void)read_history(path("1.jsonl")), std::system_error);
  EXPECT_THROW(HistoryFile(path("nowhere/1.jsonl")), std::system_error);
  HistoryFile file("/dev/full");
  EXPECT_THROW(file.note(ended(1, 1)), std::system_error);
  EXPECT_THROW((void)read_histories(path("nowhere")), std::system_error);
  write("notes.txt", "not a history");
  EXPECT_THROW((void)read_histories(directory_.path()), std::runtime_error) << "a directory without histories";
}

// Several threads of one process may write their notes in a different order than that of the times.
TEST_F(HistoryFileTest, HistoriesOfProcesses_AreMergedByTime) {
  for (const int time : {4, 1}) HistoryFile(path("1.jsonl")).note(ended(1, time));
  for (const int time : {2, 3, 5}) HistoryFile(path("2.jsonl")).note(ended(2, time));
  write("notes.txt", "not a history");
  EXPECT_EQ(read_histories(directory_.path()),
            (std::vector{ended(1, 1), ended(2, 2), ended(2, 3), ended(1, 4), ended(2, 5)}));
}

TEST_F(HistoryFileTest, EventsOfOneTime_StayInTheirOrder) {
  std::vector<Event> events;
  for (int i = 0; i < 100; ++i) {
    events.push_back(ended(1, 7));
    events.back().subject = i;
    HistoryFile(path("1.jsonl")).note(events.back());
  }
  EXPECT_EQ(read_histories(directory_.path()), events);
}

}  // namespace
}  // namespace dlock::torture

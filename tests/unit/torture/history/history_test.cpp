// Events as lines of a history, and histories in files, which processes write and may be killed while they do.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <fstream>
#include <set>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "torture/history/history_file.hpp"
#include "torture/rig/scratch_directory.hpp"

namespace dlock::torture {

// For GoogleTest.
void PrintTo(const Event& event, std::ostream* out) {
  *out << to_line(event);
}

namespace {

constexpr std::size_t kinds_of_events = static_cast<std::size_t>(Kind::residue) + 1;

TimePoint at(std::int64_t nanoseconds) {
  return TimePoint(std::chrono::nanoseconds(nanoseconds));
}

// Each kind with all that it can say.
std::vector<Event> one_of_each() {
  std::vector<Event> all;
  for (std::size_t kind = 0; kind < kinds_of_events; ++kind) {
    all.push_back({.at = at(5), .kind = static_cast<Kind>(kind), .process = 3, .attempt = 17, .lock = "a"});
    all.push_back(all.back());
    all.back().token = FencingToken((std::uint64_t{1} << 63U) - 1);
    all.back().subject = 9;
    all.back().word = "unavailable: \"x\"\n\t\u00e4 \xf0\x9f\x94\x92";
  }
  for (Event& event : std::vector<Event>(all)) {
    const bool limited = event.kind == Kind::asked || event.kind == Kind::granted;
    if (limited || event.kind == Kind::struck) event.until = at(1'000'000'007);
    event.yes = event.kind == Kind::looked || event.kind == Kind::released || event.kind == Kind::wrote ||
                event.kind == Kind::served || event.kind == Kind::probed;
    all.push_back(event);
    if (!limited) continue;
    event.until = TimePoint::max();
    all.push_back(event);
  }
  return all;
}

TEST(EventTest, EveryKind_IsReadBackFromItsLine) {
  std::set<std::string_view> names;
  std::set<std::string> descriptions;
  for (Event event : one_of_each()) {
    std::string why;
    const auto back = parse_line(to_line(event), why);
    ASSERT_TRUE(back.has_value()) << to_line(event) << ": " << why;
    EXPECT_EQ(*back, event);
    EXPECT_EQ(to_line(event).find('\n'), std::string::npos);
    names.insert(name_of(event.kind));
    event.token = {};
    event.subject = 0;
    event.word = "";
    if (event.until != TimePoint::max()) event.until = {};
    descriptions.insert(describe(event, {}));
  }
  EXPECT_EQ(names.size(), kinds_of_events);
  EXPECT_FALSE(names.contains(""));
  EXPECT_EQ(descriptions.size(), kinds_of_events + 5U + 2U) << "five are yes or no, two have a limit or none";
}

// Histories of earlier versions can still be checked.
TEST(EventTest, Line_HasTheMembersOfItsEvent) {
  const std::string asked = R"({"time":1,"process":1,"event":"asked","acquire":2,"lock":"a",)";
  Event event{.at = at(1), .kind = Kind::asked, .process = 1, .attempt = 2, .lock = "a", .until = at(9)};
  EXPECT_EQ(to_line(event), asked + R"("until":9})");
  event.lock_kind = LockKind::semaphore;
  event.permits = 3;
  EXPECT_EQ(to_line(event), asked + R"("kind":"semaphore","permits":3,"until":9})");
  event.lock_kind = LockKind::read_write;
  event.mode = Mode::shared;
  event.permits = 1;
  EXPECT_EQ(to_line(event), asked + R"("kind":"read-write","mode":"shared","until":9})");
  std::string why;
  EXPECT_EQ(parse_line(to_line(event), why), event) << why;
  EXPECT_EQ(to_line({.at = at(-1), .kind = Kind::stopped, .subject = 4}),
            R"({"time":-1,"process":0,"event":"stopped","subject":4})");
  // Locks may have any name; errors may say anything.
  EXPECT_EQ(parse_line(to_line({.kind = Kind::denied, .word = "bad \xff byte"}), why)->word, "bad \xef\xbf\xbd byte");
}

TEST(EventTest, LineThatIsNoEvent_IsRefusedWithTheReason) {
  const std::string ended = R"({"time":1,"process":1,"event":"ended")";
  const std::string start = R"({"time":1,"process":1,"event":"asked","acquire":2,"lock":"a",)";
  for (const auto& [line, reason] : std::vector<std::pair<std::string, std::string>>{
           {"", "parse error"},
           {ended + "} x", "parse error"},
           {"[]", "not an object"},
           {R"({"time":1,"process":1,"event":"gone"})", "unknown event \"gone\""},
           {R"({"time":1,"process":1,"event":"looked"})", "'yes' not found"},
           {start + R"("untill":5})", "unknown member \"untill\""},  // it would be no deadline
           {start + R"("kind":"mutex"})", "unknown kind \"mutex\""},
           {start + R"("mode":"shared"})", "\"mode\" is \"shared\" of a lock"},
           {start + R"("permits":2})", "\"permits\" is 2 of a lock"},
           {start + R"("kind":"semaphore","permits":0})", "\"permits\" is 0 of a semaphore"},
           {R"({"time":1.5,"process":1,"event":"ended"})", "\"time\" is 1.5"},
           {R"({"time":9223372036854775808,"process":1,"event":"ended"})", "\"time\" is 9223372036854775808"},
           {R"({"time":1,"process":4294967297,"event":"ended"})", "\"process\" is 4294967297"},
           {ended + R"(,"token":-1})", "\"token\" is -1"},
       }) {
    std::string why;
    EXPECT_FALSE(parse_line(line, why).has_value()) << line;
    EXPECT_THAT(why, testing::HasSubstr(reason)) << line;
  }
}

// --- Files -----------------------------------------------------------------------------------------------------------

class HistoryFileTest : public testing::Test {
 protected:
  [[nodiscard]] std::filesystem::path path(const std::string& name) const { return directory_.path() + "/" + name; }

  void write(const std::string& name, const std::string& text) const {
    std::ofstream(path(name), std::ios::binary | std::ios::app) << text;
  }

  rig::ScratchDirectory directory_;
};

Event ended(int process, int time) {
  return {.at = at(time), .kind = Kind::ended, .process = process};
}

TEST_F(HistoryFileTest, NotedEvents_AreReadBack) {
  {
    HistoryFile file(path("1.jsonl"));
    file.note(ended(1, 1));
    EXPECT_EQ(read_history(path("1.jsonl")).size(), 1U) << "before the file is closed";
  }
  HistoryFile(path("1.jsonl")).note(ended(1, 3));  // appends
  EXPECT_EQ(read_history(path("1.jsonl")), (std::vector{ended(1, 1), ended(1, 3)}));
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
  const std::string last = to_line(ended(1, 2));
  write("1.jsonl", to_line(ended(1, 1)) + "\n" + last.substr(0, 20));
  write("2.jsonl", to_line(ended(1, 1)) + "\n" + last);
  for (const char* name : {"1.jsonl", "2.jsonl"}) EXPECT_EQ(read_history(path(name)), (std::vector{ended(1, 1)}));
}

TEST_F(HistoryFileTest, FileThatCannotBeUsed_IsAnError) {
  EXPECT_THROW((void)read_history(path("1.jsonl")), std::system_error);
  EXPECT_THROW(HistoryFile(path("nowhere/1.jsonl")), std::system_error);
  HistoryFile file("/dev/full");
  EXPECT_THROW(file.note(ended(1, 1)), std::system_error);
  EXPECT_THROW((void)read_histories(path("nowhere")), std::system_error);
  EXPECT_THROW((void)read_histories(directory_.path()), std::runtime_error) << "a directory without histories";
  write("1.jsonl", to_line(ended(1, 1)) + "\n" + R"({"time":1,"process":1,"event":"gone"})" + "\n");
  EXPECT_THAT(
      [this] { (void)read_history(path("1.jsonl")); },
      testing::ThrowsMessage<std::runtime_error>(path("1.jsonl").string() + ", line 2: unknown event \"gone\""));
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
  std::vector<Event> events(100, ended(1, 7));
  HistoryFile file(path("1.jsonl"));
  for (int i = 0; i < 100; ++i) {
    events[static_cast<std::size_t>(i)].subject = i;
    file.note(events[static_cast<std::size_t>(i)]);
  }
  EXPECT_EQ(read_histories(directory_.path()), events);
}

}  // namespace
}  // namespace dlock::torture

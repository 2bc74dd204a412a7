// Events as lines of a history, and as sentences for people.
#include "torture/history/event.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <set>
#include <string>
#include <vector>

namespace dlock::torture {

// For GoogleTest.
void PrintTo(const Event& event, std::ostream* out) {
  *out << to_line(event);
}

namespace {

using namespace std::chrono_literals;

constexpr std::size_t kinds_of_events = static_cast<std::size_t>(Kind::residue) + 1;

TimePoint at(std::int64_t nanoseconds) {
  return TimePoint(std::chrono::nanoseconds(nanoseconds));
}

// Each kind with all that it can say.
std::vector<Event> one_of_each() {
  const Event acquire{.at = at(5), .process = 3, .attempt = 17, .lock = "a"};
  std::vector<Event> all;
  for (std::size_t kind = 0; kind < kinds_of_events; ++kind) {
    Event event = acquire;
    event.kind = static_cast<Kind>(kind);
    all.push_back(event);
    event.token = FencingToken((std::uint64_t{1} << 63U) - 1);
    event.subject = 9;
    event.word = "unavailable: \"x\"\n\t\u00e4 \xf0\x9f\x94\x92";
    all.push_back(event);
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

Event asked(LockKind kind, Mode mode = Mode::exclusive, std::uint32_t permits = 1) {
  return {.at = at(1),
          .kind = Kind::asked,
          .process = 1,
          .attempt = 2,
          .lock = "a",
          .lock_kind = kind,
          .mode = mode,
          .permits = permits,
          .until = at(9)};
}

TEST(EventTest, Line_HasTheMembersOfItsEvent) {
  const std::string asked_line = R"({"time":1,"process":1,"event":"asked","acquire":2,"lock":"a")";
  for (const auto& [event, line] : std::vector<std::pair<Event, std::string>>{
           {{.at = at(12),
             .kind = Kind::granted,
             .process = 3,
             .attempt = 17,
             .lock = "a",
             .token = FencingToken(18),
             .until = at(99)},
            R"({"time":12,"process":3,"event":"granted","acquire":17,"lock":"a","token":18,"until":99})"},
           {{.at = at(12), .kind = Kind::looked, .process = 3, .attempt = 17, .lock = "a", .yes = true},
            R"({"time":12,"process":3,"event":"looked","acquire":17,"lock":"a","yes":true})"},
           {{.at = at(12), .kind = Kind::healed, .word = std::string(everything)},
            R"({"time":12,"process":0,"event":"healed","word":"everything"})"},
           {{.at = at(-1), .kind = Kind::stopped, .subject = 4},
            R"({"time":-1,"process":0,"event":"stopped","subject":4})"},
           {{.at = at(1), .kind = Kind::asked, .process = 1, .attempt = 1, .lock = "a", .until = TimePoint::max()},
            R"({"time":1,"process":1,"event":"asked","acquire":1,"lock":"a"})"},
           {asked(LockKind::lock), asked_line + R"(,"until":9})"},
           {asked(LockKind::read_write), asked_line + R"(,"kind":"read-write","until":9})"},
           {asked(LockKind::read_write, Mode::shared),
            asked_line + R"(,"kind":"read-write","mode":"shared","until":9})"},
           {asked(LockKind::semaphore, Mode::exclusive, 3),
            asked_line + R"(,"kind":"semaphore","permits":3,"until":9})"},
           {asked(LockKind::election), asked_line + R"(,"kind":"election","until":9})"},
       }) {
    EXPECT_EQ(to_line(event), line);
    std::string why;
    EXPECT_EQ(parse_line(line, why), event) << why;
  }
}

// Locks may have any name; errors may say anything.
TEST(EventTest, InvalidUtf8_IsReplacedInItsLine) {
  std::string why;
  const auto event = parse_line(to_line({.kind = Kind::denied, .word = "bad \xff byte"}), why);
  ASSERT_TRUE(event.has_value()) << why;
  EXPECT_EQ(event->word, "bad \xef\xbf\xbd byte");
}

TEST(EventTest, LineThatIsNoEvent_IsRefusedWithTheReason) {
  const std::string ended = R"({"time":1,"process":1,"event":"ended")";
  const std::string start = R"({"time":1,"process":1,"event":"asked","acquire":2,"lock":"a",)";
  for (const auto& [line, reason] : std::vector<std::pair<std::string, std::string>>{
           {"", "parse error"},
           {"nonsense", "parse error"},
           {ended + "} x", "parse error"},
           {ended + ",\"word\":\"\xff\"}", "UTF-8"},
           {"[]", "not an object"},
           {"7", "not an object"},
           {R"({"process":1,"event":"ended"})", "'time' not found"},
           {R"({"time":1,"event":"ended"})", "'process' not found"},
           {R"({"time":1,"process":1})", "'event' not found"},
           {R"({"time":1,"process":1,"event":7})", "must be string"},
           {R"({"time":1,"process":1,"event":"gone"})", "unknown event \"gone\""},
           {R"({"time":1,"process":1,"event":"looked"})", "'yes' not found"},
           {R"({"time":1,"process":1,"event":"looked","yes":1})", "must be boolean"},
           {ended + R"(,"word":1})", "must be string"},
           {start + R"("untill":5})", "unknown member \"untill\""},  // it would be no deadline
           {start + R"("kind":"mutex"})", "unknown kind \"mutex\""},
           {start + R"("mode":"shared"})", "\"mode\" is \"shared\" of a lock"},
           {start + R"("kind":"read-write","mode":"alone"})", "\"mode\" is \"alone\" of a read-write lock"},
           {start + R"("permits":2})", "\"permits\" is 2 of a lock"},
           {start + R"("kind":"semaphore","permits":0})", "\"permits\" is 0 of a semaphore"},
           {start + R"("kind":"semaphore","permits":-1})", "\"permits\" is -1"},
           {start + R"("until":null})", "\"until\" is null"},
           {R"({"time":1.5,"process":1,"event":"ended"})", "\"time\" is 1.5"},
           {R"({"time":"1","process":1,"event":"ended"})", "\"time\" is \"1\""},
           {R"({"time":9223372036854775808,"process":1,"event":"ended"})", "\"time\" is 9223372036854775808"},
           {R"({"time":1,"process":4294967297,"event":"ended"})", "\"process\" is 4294967297"},
           {ended + R"(,"acquire":-1})", "\"acquire\" is -1"},
           {ended + R"(,"token":-1})", "\"token\" is -1"},
           {ended + R"(,"subject":true})", "\"subject\" is true"},
       }) {
    std::string why;
    EXPECT_FALSE(parse_line(line, why).has_value()) << line;
    EXPECT_THAT(why, testing::HasSubstr(reason)) << line;
  }
}

TEST(EventTest, Event_IsDescribedToPeople) {
  const TimePoint origin = at(1'000'000'000);
  Event event{
      .at = origin + 1500ms, .kind = Kind::asked, .process = 3, .attempt = 17, .lock = "a", .until = origin + 3500ms};
  EXPECT_EQ(describe(event, origin), "    +1.500000 s  process 3: asks, for at most 2.000000 s  [lock a, acquire 17]");
  event.kind = Kind::writing;
  event.lock_kind = LockKind::read_write;
  event.token = FencingToken(5);
  EXPECT_EQ(describe(event, origin),
            "    +1.500000 s  process 3: writes with token 5  [read-write lock a, acquire 17]");
  event.mode = Mode::shared;
  EXPECT_EQ(describe(event, origin),
            "    +1.500000 s  process 3: reads with token 5  [read-write lock a to read, acquire 17]");
  EXPECT_EQ(describe({.at = origin - 1ms, .kind = Kind::killed, .subject = 9}, origin),
            "    -0.001000 s  process 9 is killed");
}

}  // namespace
}  // namespace dlock::torture

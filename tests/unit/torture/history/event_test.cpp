// Events as lines.
#include "torture/history/event.hpp"

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
    if (event.kind == Kind::asked || event.kind == Kind::granted || event.kind == Kind::struck) {
      event.until = at(1'000'000'007);
    }
    switch (event.kind) {
      case Kind::looked:
      case Kind::released:
      case Kind::wrote:
      case Kind::served:
      case Kind::probed:
        event.yes = true;
        break;
      default:
        break;
    }
    all.push_back(event);
  }
  for (Event& event : std::vector<Event>(all)) {
    if (event.kind != Kind::asked && event.kind != Kind::granted) continue;
    event.until = TimePoint::max();
    all.push_back(event);
  }
  return all;
}

std::string refusal(const std::string& line) {
  std::string why;
  const auto event = parse_line(line, why);
  EXPECT_FALSE(event.has_value()) << line;
  EXPECT_FALSE(why.empty()) << line;
  return why;
}

TEST(Event, EveryKindComesBackFromItsLine) {
  std::set<Kind> kinds;
  for (const Event& event : one_of_each()) {
    std::string why;
    const auto back = parse_line(to_line(event), why);
    ASSERT_TRUE(back.has_value()) << to_line(event) << ": " << why;
    EXPECT_EQ(*back, event);
    EXPECT_EQ(to_line(event).find('\n'), std::string::npos);
    kinds.insert(event.kind);
  }
  EXPECT_EQ(kinds.size(), kinds_of_events);
}

TEST(Event, KindsHaveDifferentNames) {
  std::set<std::string_view> names;
  for (const Event& event : one_of_each()) names.insert(name_of(event.kind));
  EXPECT_EQ(names.size(), kinds_of_events);
  EXPECT_FALSE(names.contains(""));
}

TEST(Event, ALineSaysWhatThereIsToSayAndNoMore) {
  EXPECT_EQ(to_line({.at = at(12),
                     .kind = Kind::granted,
                     .process = 3,
                     .attempt = 17,
                     .lock = "a",
                     .token = FencingToken(18),
                     .until = at(99)}),
            R"({"time":12,"process":3,"event":"granted","acquire":17,"lock":"a","token":18,"until":99})");
  EXPECT_EQ(to_line({.at = at(12), .kind = Kind::looked, .process = 3, .attempt = 17, .lock = "a", .yes = true}),
            R"({"time":12,"process":3,"event":"looked","acquire":17,"lock":"a","yes":true})");
  EXPECT_EQ(to_line({.at = at(12), .kind = Kind::healed, .word = std::string(everything)}),
            R"({"time":12,"process":0,"event":"healed","word":"everything"})");
  EXPECT_EQ(to_line({.at = at(-1), .kind = Kind::stopped, .subject = 4}),
            R"({"time":-1,"process":0,"event":"stopped","subject":4})");
}

TEST(Event, SaysWhichKindOfLockItIsAboutAndHowItIsAskedFor) {
  const std::string start = R"({"time":1,"process":1,"event":"asked","acquire":2,"lock":"a")";
  const Event plain{.at = at(1), .kind = Kind::asked, .process = 1, .attempt = 2, .lock = "a", .until = at(9)};
  const auto line = [&](auto change) {
    Event event = plain;
    change(event);
    std::string why;
    EXPECT_EQ(parse_line(to_line(event), why), event) << why;
    return to_line(event);
  };
  EXPECT_EQ(line([](Event&) {}), start + R"(,"until":9})");
  EXPECT_EQ(line([](Event& e) { e.lock_kind = LockKind::read_write; }), start + R"(,"kind":"read-write","until":9})");
  EXPECT_EQ(line([](Event& e) {
              e.lock_kind = LockKind::read_write;
              e.mode = Mode::shared;
            }),
            start + R"(,"kind":"read-write","mode":"shared","until":9})");
  EXPECT_EQ(line([](Event& e) {
              e.lock_kind = LockKind::semaphore;
              e.permits = 3;
            }),
            start + R"(,"kind":"semaphore","permits":3,"until":9})");
  EXPECT_EQ(line([](Event& e) { e.lock_kind = LockKind::election; }), start + R"(,"kind":"election","until":9})");
}

TEST(Event, AKindThatMakesNoSenseIsRefused) {
  const std::string start = R"({"time":1,"process":1,"event":"asked","acquire":2,"lock":"a",)";
  EXPECT_EQ(refusal(start + R"("kind":"mutex"})"), "unknown kind \"mutex\"");
  EXPECT_EQ(refusal(start + R"("mode":"shared"})"), "\"mode\" is \"shared\" of a lock");
  EXPECT_EQ(refusal(start + R"("kind":"read-write","mode":"alone"})"), "\"mode\" is \"alone\" of a read-write lock");
  EXPECT_EQ(refusal(start + R"("permits":2})"), "\"permits\" is 2 of a lock");
  EXPECT_EQ(refusal(start + R"("kind":"semaphore","permits":0})"), "\"permits\" is 0 of a semaphore");
  EXPECT_EQ(refusal(start + R"("kind":"semaphore","permits":-1})"), "\"permits\" is -1");
}

TEST(Event, ALimitThatIsNotThereIsNone) {
  std::string why;
  const auto event = parse_line(R"({"time":1,"process":1,"event":"asked","acquire":1,"lock":"a"})", why);
  ASSERT_TRUE(event.has_value()) << why;
  EXPECT_EQ(event->until, TimePoint::max());
}

// Locks may be called anything; errors may say anything.
TEST(Event, WhatIsNoUtf8IsStillALine) {
  std::string why;
  const auto event = parse_line(to_line({.kind = Kind::denied, .word = "bad \xff byte"}), why);
  ASSERT_TRUE(event.has_value()) << why;
  EXPECT_EQ(event->word, "bad \xef\xbf\xbd byte");
}

TEST(Event, WhatIsNoEventIsRefusedWithTheReason) {
  EXPECT_NE(refusal("").find("parse error"), std::string::npos);
  EXPECT_NE(refusal("nonsense").find("parse error"), std::string::npos);
  EXPECT_NE(refusal(R"({"time":1,"process":1,"event":"ended"} x)").find("parse error"), std::string::npos);
  EXPECT_NE(refusal("{\"time\":1,\"process\":1,\"event\":\"ended\",\"word\":\"\xff\"}").find("UTF-8"),
            std::string::npos);
  EXPECT_EQ(refusal("[]"), "not an object");
  EXPECT_EQ(refusal("7"), "not an object");
  EXPECT_NE(refusal(R"({"process":1,"event":"ended"})").find("'time' not found"), std::string::npos);
  EXPECT_NE(refusal(R"({"time":1,"event":"ended"})").find("'process' not found"), std::string::npos);
  EXPECT_NE(refusal(R"({"time":1,"process":1})").find("'event' not found"), std::string::npos);
  EXPECT_NE(refusal(R"({"time":1,"process":1,"event":7})").find("must be string"), std::string::npos);
  EXPECT_EQ(refusal(R"({"time":1,"process":1,"event":"gone"})"), "unknown event \"gone\"");
  EXPECT_NE(refusal(R"({"time":1,"process":1,"event":"looked"})").find("'yes' not found"), std::string::npos);
  EXPECT_NE(refusal(R"({"time":1,"process":1,"event":"looked","yes":1})").find("must be boolean"), std::string::npos);
  EXPECT_NE(refusal(R"({"time":1,"process":1,"event":"ended","word":1})").find("must be string"), std::string::npos);
}

// A deadline that is misspelt would be none.
TEST(Event, AnUnknownMemberIsRefused) {
  EXPECT_EQ(refusal(R"({"time":1,"process":1,"event":"asked","acquire":1,"lock":"a","untill":5})"),
            "unknown member \"untill\"");
}

TEST(Event, NumbersThatDoNotFitAreRefused) {
  EXPECT_EQ(refusal(R"({"time":1.5,"process":1,"event":"ended"})"), "\"time\" is 1.5");
  EXPECT_EQ(refusal(R"({"time":"1","process":1,"event":"ended"})"), "\"time\" is \"1\"");
  EXPECT_EQ(refusal(R"({"time":9223372036854775808,"process":1,"event":"ended"})"), "\"time\" is 9223372036854775808");
  EXPECT_EQ(refusal(R"({"time":1,"process":4294967297,"event":"ended"})"), "\"process\" is 4294967297");
  EXPECT_EQ(refusal(R"({"time":1,"process":1,"event":"ended","acquire":-1})"), "\"acquire\" is -1");
  EXPECT_EQ(refusal(R"({"time":1,"process":1,"event":"ended","token":-1})"), "\"token\" is -1");
  EXPECT_EQ(refusal(R"({"time":1,"process":1,"event":"ended","subject":true})"), "\"subject\" is true");
  EXPECT_EQ(refusal(R"({"time":1,"process":1,"event":"asked","until":null})"), "\"until\" is null");
}

TEST(Event, IsDescribedToPeople) {
  const TimePoint origin = at(1'000'000'000);
  const Event acquire{
      .at = origin + 1500ms, .kind = Kind::asked, .process = 3, .attempt = 17, .lock = "a", .until = origin + 3500ms};
  EXPECT_EQ(describe(acquire, origin),
            "    +1.500000 s  process 3: asks, for at most 2.000000 s  [lock a, acquire 17]");
  Event write = acquire;
  write.kind = Kind::writing;
  write.lock_kind = LockKind::read_write;
  write.token = FencingToken(5);
  EXPECT_EQ(describe(write, origin),
            "    +1.500000 s  process 3: writes with token 5  [read-write lock a, acquire 17]");
  write.mode = Mode::shared;
  EXPECT_EQ(describe(write, origin),
            "    +1.500000 s  process 3: reads with token 5  [read-write lock a to read, acquire 17]");
  EXPECT_EQ(describe({.at = origin - 1ms, .kind = Kind::killed, .subject = 9}, origin),
            "    -0.001000 s  process 9 is killed");
}

TEST(Event, EveryKindIsDescribedInItsOwnWords) {
  std::set<std::string> seen;
  for (Event event : one_of_each()) {
    event.token = {};
    event.subject = 0;
    event.word = "";
    if (event.until != TimePoint::max()) event.until = {};
    seen.insert(describe(event, {}));
  }
  // Five are yes or no, two have a limit or none.
  EXPECT_EQ(seen.size(), kinds_of_events + 5U + 2U);
}

}  // namespace
}  // namespace dlock::torture

// Replies of the scripts: their meaning, and which are refused. In these bytes '|' is the end of a line.
#include "backends/redis/requests/answers.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <optional>
#include <sstream>
#include <string>
#include <tuple>

#include "fake_server.hpp"

namespace dlock::redis {

namespace {

using namespace std::chrono_literals;
using Was = ReleaseAnswer::Was;

auto fields_of(const AcquireAnswer& it) {
  return std::tuple(it.granted, it.token, it.free_in, it.rank, it.joined, it.ticket, it.more, it.other_permits);
}

TEST(AcquireAnswer, IsWhatTheReplySays) {
  constexpr auto longest_in_ms = std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::nanoseconds::max());
  struct Row {
    const char* bytes;
    AcquireAnswer answer;
  };
  for (const Row& row : {
           Row{"$16|1795243190100435|", {.granted = true, .token = FencingToken(1795243190100435)}},
           Row{"$19|9223372036854775807|", {.granted = true, .token = FencingToken(9223372036854775807U)}},
           Row{"*5|:0|:250|:3|:0|:8|", {.free_in = 250ms, .rank = 3, .ticket = 8}},
           Row{"*5|:0|:0|:0|:1|:0|", {.free_in = 0ms, .rank = 0, .joined = true}},
           Row{"*5|:0|:-1|:-1|:0|:8|", {.ticket = 8}},  // no end, no place
           Row{"*5|:0|:-2|:9|:1|:8|", {.free_in = 0ms, .rank = 9, .joined = true, .ticket = 8, .more = true}},
           Row{"*5|:0|:9223372036854775807|:9223372036854775807|:0|:8|",
               {.free_in = longest_in_ms, .rank = 9223372036854775807U, .ticket = 8}},
           Row{"*2|:2|:2147483647|", {.other_permits = 2147483647U}},
           Row{"*2|:2|:1|", {.other_permits = 1}},
       }) {
    const auto answer = read_acquire(parsed(row.bytes));
    ASSERT_TRUE(answer.ok()) << row.bytes;
    EXPECT_EQ(fields_of(answer.value()), fields_of(row.answer)) << row.bytes;
  }
}

TEST(ReleaseAnswer, IsWhatTheReplySays) {
  struct Row {
    const char* bytes;
    ReleaseAnswer answer;
  };
  for (const Row& row :
       {Row{":1|", {Was::ours, true, false}}, Row{"*3|:1|:0|:0|", {Was::ours, false, false}},
        Row{"*3|:0|:1|:1|", {Was::somebody_elses, true, true}}, Row{"*3|:-1|:1|:0|", {Was::free, true, false}}}) {
    const auto answer = read_release(parsed(row.bytes));
    ASSERT_TRUE(answer.ok()) << row.bytes;
    EXPECT_EQ(answer.value().was, row.answer.was) << row.bytes;
    EXPECT_EQ(answer.value().may_publish, row.answer.may_publish) << row.bytes;
    EXPECT_EQ(answer.value().more, row.answer.more) << row.bytes;
  }
}

TEST(InspectAnswer, OfALockWithOneHolder_IsWhatTheReplySays) {
  struct Row {
    const char* bytes;
    LockInfo info;
    LockKind kind = LockKind::lock;
  };
  for (const Row& row : {
           Row{"*4|$3|c:1|:1500|$24|17 c:1 host:7:my program|:2|",
               {.name = "x",
               .held = true,
               .holder = "host:7:my program",
               .token = FencingToken(17),
               .remaining = 1500ms,
               .waiters = 2}},
           // Free, and held by a program that is not dlock: the last holder is not named.
           Row{"*4|$-1|:-2|$12|17 c:1 host:|:0|", {.name = "x", .token = FencingToken(17), .waiters = 0}},
           Row{"*4|$7|foreign|:-1|$12|17 c:1 host:|:0|",
               {.name = "x", .held = true, .token = FencingToken(17), .waiters = 0}},
           Row{"*4|$1|v|:100|$16|7 v h:1:x\n10.0.0|:0|",
               {.name = "x",
               .held = true,
               .holder = "h:1:x",
               .token = FencingToken(7),
               .remaining = 100ms,
               .waiters = 0,
               .value = "10.0.0"},
               LockKind::election},
           Row{"*4|$1|v|:0|$-1|:0|", {.name = "x", .held = true, .remaining = 0ms, .waiters = 0}},
           // Its leader has not confirmed yet.
           Row{"*4|$1|w|:100|$16|7 v h:1:x\n10.0.0|:0|",
               {.name = "x", .token = FencingToken(7), .waiters = 0},
               LockKind::election},
       }) {
    SCOPED_TRACE(row.bytes);
    const auto info = read_inspect(parsed(row.bytes), "x", row.kind);
    ASSERT_TRUE(info.ok()) << info.failure().detail;
    const auto fields = [](const LockInfo& it) {
      return std::tuple(it.name, it.held, it.holder, it.token, it.remaining, it.waiters, it.value);
    };
    EXPECT_EQ(fields(info.value()), fields(row.info));
    EXPECT_EQ(info.value().kind, row.kind);
  }
}

TEST(InspectAnswer, OfSeveralHolders_ShowsEachAndTheLongestLease) {
  const auto reply = parsed("*4|:0|$2|12|:3|*6|:100|:1|$8|11 a b:c|:300|:1|$0||");
  const auto info = read_inspect(reply, "name", LockKind::read_write);
  ASSERT_TRUE(info.ok());
  EXPECT_TRUE(info.value().held);
  EXPECT_EQ(info.value().token, FencingToken(12));
  EXPECT_EQ(info.value().waiters, 3U);
  EXPECT_EQ(info.value().remaining, 300ms);
  EXPECT_EQ(info.value().holder, "") << "it has not confirmed its grant yet";
  ASSERT_EQ(info.value().holders.size(), 2U);
  const HolderInfo& first = info.value().holders[0];
  EXPECT_EQ(std::tuple(first.holder, first.token, first.mode, first.remaining),
            std::tuple("a b:c", FencingToken(11), Mode::shared, std::optional<std::chrono::nanoseconds>(100ms)));
  EXPECT_EQ(read_inspect(reply, "name", LockKind::semaphore).failure().code, errc::protocol) << "another kind";

  const auto turned =
      read_inspect(parsed("*4|:0|$2|12|:3|*6|:300|:1|$3|9 x|:100|:1|$0||"), "name", LockKind::read_write);
  EXPECT_EQ(turned.value().holder, "x") << "the lease that ends last, wherever it stands";
  const auto held = read_inspect(parsed("*4|:5|$1|7|:0|*3|:100|:1|$3|7 h|"), "name", LockKind::semaphore);
  ASSERT_TRUE(held.ok());
  EXPECT_EQ(held.value().permits, 5U);
  EXPECT_EQ(held.value().holders.at(0).mode, Mode::exclusive);
  const auto idle = read_inspect(parsed("*4|:5|$1|7|:0|*0|"), "name", LockKind::semaphore);
  ASSERT_TRUE(idle.ok());
  EXPECT_EQ(std::tuple(idle.value().permits, idle.value().held, idle.value().token),
            std::tuple(0U, false, FencingToken(7)));
}

TEST(Answers, OfAnyOtherShapeAreRefused) {
  const auto refuses = [](const auto& read, const std::string& shapes) {
    std::istringstream lines(shapes);
    for (std::string bytes; std::getline(lines >> std::ws, bytes, ';');) {
      const auto answer = read(parsed(bytes));
      ASSERT_FALSE(answer.ok()) << bytes;
      EXPECT_EQ(answer.failure().code, errc::protocol) << bytes;
    }
  };
  refuses(read_acquire, R"(
      +OK|;:1|;$-1|;*-1|;*0|;*1|:1|;*2|:1|$1|7|;*2|:1|:7|;$1|0|;$2|-5|;$0||;$2|7x|;$19|9223372036854775808|;
      *3|:1|$1|7|:0|;*2|:2|$1|7|;*5|:0|:-3|:0|:0|:8|;*5|:0|:1|:-2|:0|:8|;*5|:0|$1|1|:0|:0|:8|;
      *5|:0|:1|$1|0|:0|:8|;*5|:0|:1|:0|:2|:8|;*5|:0|:1|:0|$1|0|:8|;*5|:0|:1|:0|:0|:-8|;*5|:0|:1|:0|:0|$1|8|;
      *5|:1|:1|:0|:0|:8|;*5|$1|0|:1|:0|:0|:8|;*4|:0|:1|:0|:0|;*3|:0|:1|:0|;*2|:0|:1|;*2|:2|:0|;*2|:2|:-1|;*2|:2|:2147483648|;*2|:2|$1|1|;)");
  refuses(read_renew, "+OK|;:2|;:-1|;$1|1|;*0|;");
  refuses(read_forget, "+OK|;:2|;:-1|;$1|1|;*0|;");
  refuses(
      read_release,
      ":0|;:2|;*1|:1|;*2|:1|:1|;*3|:2|:1|:0|;*3|:1|:2|:0|;*3|:1|:1|:2|;*3|:1|$1|1|:0|;*3|$1|1|:1|:0|;*3|:1|:1|$1|0|;");
  refuses([](const Reply& reply) { return read_inspect(reply, "x"); },
          "*3|$-1|:-2|$-1|;*4|:1|:-2|$-1|:0|;*4|$-1|:-3|$-1|:0|;*4|$-1|:-2|$3|7 x|:0|;*4|$-1|:-2|$-1|:-1|;"
          "*4|$-1|:-2|$-1|$1|0|;*4|$-1|$2|-2|$-1|:0|;*4|$-1|:-2|:7|:0|;");
  refuses([](const Reply& reply) { return read_inspect(reply, "x", LockKind::read_write); },
          "*3|:0|$-1|:0|;*4|:-1|$-1|:0|*0|;*4|$1|0|$-1|:0|*0|;*4|:0|:7|:0|*0|;*4|:0|$1|x|:0|*0|;*4|:0|$-1|:-1|*0|;"
          "*4|:0|$-1|$1|0|*0|;*4|:0|$-1|:0|:0|;*4|:0|$-1|:0|*1|:1|;*4|:0|$-1|:0|*3|:0|:1|$0||;"
          "*4|:0|$-1|:0|*3|:1|:2|$0||;*4|:0|$-1|:0|*3|:1|:1|:0|;");
  EXPECT_EQ(read_acquire(parsed("-LOADING later|")).failure().code, errc::unavailable);
  EXPECT_EQ(read_renew(parsed("-NOPERM no|")).failure().code, errc::access_denied);
}

}  // namespace

}  // namespace dlock::redis

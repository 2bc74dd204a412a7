#include "backends/redis/requests/answers.hpp"

#include <gtest/gtest.h>

#include <optional>
#include <sstream>
#include <string>
#include <string_view>

#include "backends/redis/connection/server_info.hpp"

namespace dlock::redis {

namespace {

using namespace std::chrono_literals;

// Of these bytes, in which '|' stands for the end of a line.
Reply reply_of(std::string_view text) {
  std::string bytes;
  for (const char c : text) bytes += c == '|' ? "\r\n" : std::string(1, c);
  ReplyReader reader;
  reader.feed(bytes);
  auto reply = reader.next();
  EXPECT_TRUE(reply) << bytes;
  return reply ? *std::move(reply) : Reply();
}

TEST(AcquireAnswer, IsAGrantWithItsToken) {
  auto answer = read_acquire(reply_of("$16|1795243190100435|"));
  ASSERT_TRUE(answer.ok());
  EXPECT_TRUE(answer.value().granted);
  EXPECT_EQ(answer.value().token, FencingToken(1795243190100435));
}

TEST(AcquireAnswer, TellsWhenTheLockWillBeFreeAndOurPlace) {
  auto answer = read_acquire(reply_of("*5|:0|:250|:3|:0|:8|"));
  ASSERT_TRUE(answer.ok());
  EXPECT_FALSE(answer.value().granted);
  EXPECT_EQ(answer.value().free_in, 250ms);
  EXPECT_EQ(answer.value().rank, 3U);
  EXPECT_EQ(answer.value().ticket, 8U);
}

TEST(AcquireAnswer, KnowsLocksWithoutAnEndAndPlacesOutsideTheQueue) {
  auto answer = read_acquire(reply_of("*5|:0|:-1|:-1|:0|:8|"));
  ASSERT_TRUE(answer.ok());
  EXPECT_EQ(answer.value().free_in, std::nullopt);
  EXPECT_EQ(answer.value().rank, std::nullopt);
  auto gone = read_acquire(reply_of("*5|:0|:-2|:9|:1|:8|"));
  ASSERT_TRUE(gone.ok());
  EXPECT_EQ(gone.value().free_in, 0ms);
  EXPECT_TRUE(gone.value().more) << "dead waiters are left to remove";
  EXPECT_TRUE(gone.value().joined);
  EXPECT_FALSE(answer.value().more || answer.value().joined);
}

TEST(AcquireAnswer, TellsWithHowManyPermitsOthersUseASemaphore) {
  EXPECT_EQ(read_acquire(reply_of("*2|:2|:2147483647|")).value().other_permits, 2147483647U);
  for (const char* bytes : {"*2|:2|:0|", "*2|:2|:-1|", "*2|:2|:2147483648|", "*2|:2|$1|1|", "*2|:0|:1|"}) {
    EXPECT_FALSE(read_acquire(reply_of(bytes)).ok()) << bytes;
  }
}

TEST(AcquireAnswer, OfAnAbsurdLeaseDoesNotOverflow) {
  auto answer = read_acquire(reply_of("*5|:0|:9223372036854775807|:9223372036854775807|:0|:8|"));
  ASSERT_TRUE(answer.ok());
  EXPECT_GT(std::chrono::nanoseconds(*answer.value().free_in), 0ns);
}

TEST(InspectAnswer, ShowsAllWhoHoldALockTogether) {
  const auto reply = reply_of("*4|:0|$2|12|:3|*6|:100|:1|$8|11 a b:c|:300|:1|$0||");
  const auto info = read_inspect(reply, "name", LockKind::read_write);
  ASSERT_TRUE(info.ok());
  EXPECT_TRUE(info.value().held);
  EXPECT_EQ(info.value().kind, LockKind::read_write);
  EXPECT_EQ(info.value().token, FencingToken(12));
  EXPECT_EQ(info.value().waiters, 3U);
  EXPECT_EQ(info.value().remaining, 300ms) << "of who holds it longest";
  EXPECT_EQ(info.value().holder, "") << "who has not confirmed its grant yet";
  ASSERT_EQ(info.value().holders.size(), 2U);
  EXPECT_EQ(info.value().holders[0].holder, "a b:c");
  EXPECT_EQ(info.value().holders[0].token, FencingToken(11));
  EXPECT_EQ(info.value().holders[0].mode, Mode::shared);
  EXPECT_EQ(info.value().holders[0].remaining, 100ms);
  EXPECT_EQ(read_inspect(reply, "name", LockKind::semaphore).failure().code, errc::protocol) << "another kind";
}

TEST(InspectAnswer, ShowsPermitsWhileTheyAreInUse) {
  const auto held = read_inspect(reply_of("*4|:5|$1|7|:0|*3|:100|:1|$3|7 h|"), "name", LockKind::semaphore);
  ASSERT_TRUE(held.ok());
  EXPECT_EQ(held.value().permits, 5U);
  EXPECT_EQ(held.value().holders.at(0).mode, Mode::exclusive);
  const auto idle = read_inspect(reply_of("*4|:5|$1|7|:0|*0|"), "name", LockKind::semaphore);
  ASSERT_TRUE(idle.ok());
  EXPECT_EQ(idle.value().permits, 0U);
  EXPECT_FALSE(idle.value().held);
  EXPECT_EQ(idle.value().token, FencingToken(7));
}

TEST(InspectAnswer, ShowsTheValueOfALeader) {
  const auto info = read_inspect(reply_of("*4|$1|v|:100|$16|7 v h:1:x\n10.0.0|:0|"), "name", LockKind::election);
  ASSERT_TRUE(info.ok());
  EXPECT_EQ(info.value().holder, "h:1:x");
  EXPECT_EQ(info.value().value, "10.0.0");
  const auto handed_on = read_inspect(reply_of("*4|$1|w|:100|$16|7 v h:1:x\n10.0.0|:0|"), "name", LockKind::election);
  ASSERT_TRUE(handed_on.ok());
  EXPECT_FALSE(handed_on.value().held) << "its leader does not know it yet";
}

TEST(InspectAnswer, OfSeveralHoldersIsRefusedInAnyOtherShape) {
  for (const char* bytes : {"*3|:0|$-1|:0|", "*4|:-1|$-1|:0|*0|", "*4|:0|:7|:0|*0|", "*4|:0|$1|x|:0|*0|",
                            "*4|:0|$-1|:-1|*0|", "*4|:0|$-1|:0|:0|", "*4|:0|$-1|:0|*1|:1|",
                            "*4|:0|$-1|:0|*3|:0|:1|$0||", "*4|:0|$-1|:0|*3|:1|:2|$0||", "*4|:0|$-1|:0|*3|:1|:1|:0|"}) {
    EXPECT_FALSE(read_inspect(reply_of(bytes), "name", LockKind::read_write).ok()) << bytes;
  }
}

TEST(Answers, OfAnyOtherShapeAreRefused) {
  std::istringstream acquire(R"(
      +OK| :1| $-1| *-1| *0| *1|:1| *2|:1|$1|7| *2|:1|:7| $1|0| $2|-5| $0|| $2|7x| $19|9223372036854775808|
      *3|:1|$1|7|:0| *2|:2|$1|7| *5|:0|:-3|:0|:0|:8| *5|:0|:1|:-2|:0|:8| *5|:0|$1|1|:0|:0|:8|
      *5|:0|:1|:0|:2|:8| *5|:0|:1|:0|$1|0|:8| *5|:0|:1|:0|:0|:-8| *5|:0|:1|:0|:0|$1|8| *4|:0|:1|:0|:0|
      *3|:0|:1|:0| *2|:0|:1|)");
  for (std::string bytes; acquire >> bytes;) {
    const auto answer = read_acquire(reply_of(bytes));
    ASSERT_FALSE(answer.ok()) << bytes;
    EXPECT_EQ(answer.failure().code, errc::protocol) << bytes;
  }
  for (const char* bytes : {"+OK|", ":2|", ":-1|", "$1|1|", "*0|"}) {
    EXPECT_FALSE(read_renew(reply_of(bytes)).ok()) << bytes;
    EXPECT_FALSE(read_forget(reply_of(bytes)).ok()) << bytes;
  }
  for (const char* bytes :
       {":0|", ":2|", "*1|:1|", "*2|:1|:1|", "*3|:2|:1|:0|", "*3|:1|:2|:0|", "*3|:1|:1|:2|", "*3|:1|$1|1|:0|"}) {
    EXPECT_FALSE(read_release(reply_of(bytes)).ok()) << bytes;
  }
  for (const char* bytes :
       {"*3|$-1|:-2|$-1|", "*4|:1|:-2|$-1|:0|", "*4|$-1|:-3|$-1|:0|", "*4|$-1|:-2|$3|7 x|:0|", "*4|$-1|:-2|$-1|:-1|",
        "*4|$-1|:-2|$-1|$1|0|", "*4|$-1|$2|-2|$-1|:0|", "*4|$-1|:-2|:7|:0|"}) {
    const auto answer = read_inspect(reply_of(bytes), "x");
    ASSERT_FALSE(answer.ok()) << bytes;
    EXPECT_EQ(answer.failure().code, errc::protocol);
  }
}

TEST(Answers, ToAReleaseSayWhatTheyKnow) {
  const auto answer = [](const char* bytes) { return read_release(reply_of(bytes)).value(); };
  EXPECT_TRUE(answer("*3|:1|:1|:0|").may_publish);
  EXPECT_FALSE(answer("*3|:1|:0|:0|").may_publish);
  EXPECT_TRUE(answer("*3|:1|:1|:1|").more);
  EXPECT_FALSE(answer("*3|:1|:1|:0|").more);
}

TEST(Answers, OfTheGreatestTokenAreGood) {
  EXPECT_EQ(read_acquire(reply_of("$19|9223372036854775807|")).value().token, FencingToken(9223372036854775807U));
}

TEST(Answers, ThatAreErrorsMeanWhatTheErrorMeans) {
  EXPECT_EQ(read_acquire(reply_of("-LOADING later|")).failure().code, errc::unavailable);
  EXPECT_EQ(read_renew(reply_of("-NOPERM no|")).failure().code, errc::access_denied);
}

TEST(InspectAnswer, TellsHolderTokenAndWaiters) {
  auto info = read_inspect(reply_of("*4|$3|c:1|:1500|$24|17 c:1 host:7:my program|:2|"), "x");
  ASSERT_TRUE(info.ok()) << info.failure().detail;
  EXPECT_TRUE(info.value().held);
  EXPECT_EQ(info.value().holder, "host:7:my program");
  EXPECT_EQ(info.value().token, FencingToken(17));
  EXPECT_EQ(info.value().remaining, 1500ms);
  EXPECT_EQ(info.value().waiters, 2U);
}

TEST(InspectAnswer, RemembersTheTokenOfAFreeLockAndNoHolder) {
  auto info = read_inspect(reply_of("*4|$-1|:-2|$12|17 c:1 host:|:0|"), "x");
  ASSERT_TRUE(info.ok());
  EXPECT_FALSE(info.value().held);
  EXPECT_EQ(info.value().holder, "");
  EXPECT_EQ(info.value().token, FencingToken(17));
}

TEST(InspectAnswer, DoesNotNameTheLastHolderForAForeignOne) {
  auto info = read_inspect(reply_of("*4|$7|foreign|:-1|$12|17 c:1 host:|:0|"), "x");
  ASSERT_TRUE(info.ok());
  EXPECT_TRUE(info.value().held);
  EXPECT_EQ(info.value().holder, "");
  EXPECT_EQ(info.value().remaining, std::nullopt);
}

TEST(ServerInfo, IsReadLineByLine) {
  const std::string info = "# Memory\r\nmaxmemory:100\r\nmaxmemory_policy:allkeys-lru\r\nbad\r\nempty:\r\n";
  EXPECT_EQ(info_field(info, "maxmemory_policy"), "allkeys-lru");
  EXPECT_EQ(info_number(info, "maxmemory"), 100U);
  EXPECT_EQ(info_field(info, "max"), std::nullopt);
  EXPECT_EQ(info_field(info, "bad"), std::nullopt);
  EXPECT_EQ(info_field(info, "empty"), "");
  EXPECT_EQ(info_number(info, "maxmemory_policy"), std::nullopt);
}

TEST(ServerInfo, EvictionIsADangerOnlyWithALimitAndAPolicy) {
  EXPECT_TRUE(eviction_danger("maxmemory:100\r\nmaxmemory_policy:volatile-lru\r\n"));
  EXPECT_FALSE(eviction_danger("maxmemory:0\r\nmaxmemory_policy:volatile-lru\r\n"));
  EXPECT_FALSE(eviction_danger("maxmemory:100\r\nmaxmemory_policy:noeviction\r\n"));
  EXPECT_FALSE(eviction_danger(""));
}

}  // namespace

}  // namespace dlock::redis

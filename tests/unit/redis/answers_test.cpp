#include "backends/redis/requests/answers.hpp"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <string_view>

#include "backends/redis/connection/server_info.hpp"

namespace dlock::redis {

namespace {

using namespace std::chrono_literals;

Reply reply_of(std::string_view bytes) {
  ReplyReader reader;
  reader.feed(bytes);
  auto reply = reader.next();
  EXPECT_TRUE(reply) << bytes;
  return reply ? *std::move(reply) : Reply();
}

TEST(AcquireAnswer, IsAGrantWithItsToken) {
  auto answer = read_acquire(reply_of("$16\r\n1795243190100435\r\n"));
  ASSERT_TRUE(answer.ok());
  EXPECT_TRUE(answer.value().granted);
  EXPECT_EQ(answer.value().token, FencingToken(1795243190100435));
}

TEST(AcquireAnswer, TellsWhenTheLockWillBeFreeAndOurPlace) {
  auto answer = read_acquire(reply_of("*5\r\n:0\r\n:250\r\n:3\r\n:0\r\n:8\r\n"));
  ASSERT_TRUE(answer.ok());
  EXPECT_FALSE(answer.value().granted);
  EXPECT_EQ(answer.value().free_in, 250ms);
  EXPECT_EQ(answer.value().rank, 3U);
  EXPECT_EQ(answer.value().ticket, 8U);
}

TEST(AcquireAnswer, KnowsLocksWithoutAnEndAndPlacesOutsideTheQueue) {
  auto answer = read_acquire(reply_of("*5\r\n:0\r\n:-1\r\n:-1\r\n:0\r\n:8\r\n"));
  ASSERT_TRUE(answer.ok());
  EXPECT_EQ(answer.value().free_in, std::nullopt);
  EXPECT_EQ(answer.value().rank, std::nullopt);
  auto gone = read_acquire(reply_of("*5\r\n:0\r\n:-2\r\n:9\r\n:1\r\n:8\r\n"));
  ASSERT_TRUE(gone.ok());
  EXPECT_EQ(gone.value().free_in, 0ms);
  EXPECT_TRUE(gone.value().more) << "dead waiters are left to remove";
  EXPECT_TRUE(gone.value().joined);
  EXPECT_FALSE(answer.value().more || answer.value().joined);
}

TEST(AcquireAnswer, TellsWithHowManyPermitsOthersUseASemaphore) {
  EXPECT_EQ(read_acquire(reply_of("*2\r\n:2\r\n:2147483647\r\n")).value().other_permits, 2147483647U);
  for (const char* bytes : {"*2\r\n:2\r\n:0\r\n", "*2\r\n:2\r\n:-1\r\n", "*2\r\n:2\r\n:2147483648\r\n",
                            "*2\r\n:2\r\n$1\r\n1\r\n", "*2\r\n:0\r\n:1\r\n"}) {
    EXPECT_FALSE(read_acquire(reply_of(bytes)).ok()) << bytes;
  }
}

TEST(AcquireAnswer, OfAnAbsurdLeaseDoesNotOverflow) {
  auto answer = read_acquire(reply_of("*5\r\n:0\r\n:9223372036854775807\r\n:9223372036854775807\r\n:0\r\n:8\r\n"));
  ASSERT_TRUE(answer.ok());
  EXPECT_GT(std::chrono::nanoseconds(*answer.value().free_in), 0ns);
}

TEST(InspectAnswer, ShowsAllWhoHoldALockTogether) {
  const auto reply =
      reply_of("*4\r\n:0\r\n$2\r\n12\r\n:3\r\n*6\r\n:100\r\n:1\r\n$8\r\n11 a b:c\r\n:300\r\n:1\r\n$0\r\n\r\n");
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
  const auto held = read_inspect(reply_of("*4\r\n:5\r\n$1\r\n7\r\n:0\r\n*3\r\n:100\r\n:1\r\n$3\r\n7 h\r\n"), "name",
                                 LockKind::semaphore);
  ASSERT_TRUE(held.ok());
  EXPECT_EQ(held.value().permits, 5U);
  EXPECT_EQ(held.value().holders.at(0).mode, Mode::exclusive);
  const auto idle = read_inspect(reply_of("*4\r\n:5\r\n$1\r\n7\r\n:0\r\n*0\r\n"), "name", LockKind::semaphore);
  ASSERT_TRUE(idle.ok());
  EXPECT_EQ(idle.value().permits, 0U);
  EXPECT_FALSE(idle.value().held);
  EXPECT_EQ(idle.value().token, FencingToken(7));
}

TEST(InspectAnswer, ShowsTheValueOfALeader) {
  const auto info =
      read_inspect(reply_of("*4\r\n$1\r\nv\r\n:100\r\n$16\r\n7 v h:1:x\n10.0.0\r\n:0\r\n"), "name", LockKind::election);
  ASSERT_TRUE(info.ok());
  EXPECT_EQ(info.value().holder, "h:1:x");
  EXPECT_EQ(info.value().value, "10.0.0");
  const auto handed_on =
      read_inspect(reply_of("*4\r\n$1\r\nw\r\n:100\r\n$16\r\n7 v h:1:x\n10.0.0\r\n:0\r\n"), "name", LockKind::election);
  ASSERT_TRUE(handed_on.ok());
  EXPECT_FALSE(handed_on.value().held) << "its leader does not know it yet";
}

TEST(InspectAnswer, OfSeveralHoldersIsRefusedInAnyOtherShape) {
  for (const char* bytes :
       {"*3\r\n:0\r\n$-1\r\n:0\r\n", "*4\r\n:-1\r\n$-1\r\n:0\r\n*0\r\n", "*4\r\n:0\r\n:7\r\n:0\r\n*0\r\n",
        "*4\r\n:0\r\n$1\r\nx\r\n:0\r\n*0\r\n", "*4\r\n:0\r\n$-1\r\n:-1\r\n*0\r\n", "*4\r\n:0\r\n$-1\r\n:0\r\n:0\r\n",
        "*4\r\n:0\r\n$-1\r\n:0\r\n*1\r\n:1\r\n", "*4\r\n:0\r\n$-1\r\n:0\r\n*3\r\n:0\r\n:1\r\n$0\r\n\r\n",
        "*4\r\n:0\r\n$-1\r\n:0\r\n*3\r\n:1\r\n:2\r\n$0\r\n\r\n", "*4\r\n:0\r\n$-1\r\n:0\r\n*3\r\n:1\r\n:1\r\n:0\r\n"}) {
    EXPECT_FALSE(read_inspect(reply_of(bytes), "name", LockKind::read_write).ok()) << bytes;
  }
}

TEST(Answers, OfAnyOtherShapeAreRefused) {
  const char* const acquire[] = {"+OK\r\n",
                                 ":1\r\n",
                                 "$-1\r\n",
                                 "*-1\r\n",
                                 "*0\r\n",
                                 "*1\r\n:1\r\n",
                                 "*2\r\n:1\r\n$1\r\n7\r\n",
                                 "*2\r\n:1\r\n:7\r\n",
                                 "$1\r\n0\r\n",
                                 "$2\r\n-5\r\n",
                                 "$0\r\n\r\n",
                                 "$2\r\n7x\r\n",
                                 "$19\r\n9223372036854775808\r\n",
                                 "*3\r\n:1\r\n$1\r\n7\r\n:0\r\n",
                                 "*2\r\n:2\r\n$1\r\n7\r\n",
                                 "*5\r\n:0\r\n:-3\r\n:0\r\n:0\r\n:8\r\n",
                                 "*5\r\n:0\r\n:1\r\n:-2\r\n:0\r\n:8\r\n",
                                 "*5\r\n:0\r\n$1\r\n1\r\n:0\r\n:0\r\n:8\r\n",
                                 "*5\r\n:0\r\n:1\r\n:0\r\n:2\r\n:8\r\n",
                                 "*5\r\n:0\r\n:1\r\n:0\r\n$1\r\n0\r\n:8\r\n",
                                 "*5\r\n:0\r\n:1\r\n:0\r\n:0\r\n:-8\r\n",
                                 "*5\r\n:0\r\n:1\r\n:0\r\n:0\r\n$1\r\n8\r\n",
                                 "*4\r\n:0\r\n:1\r\n:0\r\n:0\r\n",
                                 "*3\r\n:0\r\n:1\r\n:0\r\n",
                                 "*2\r\n:0\r\n:1\r\n"};
  for (const char* bytes : acquire) {
    const auto answer = read_acquire(reply_of(bytes));
    ASSERT_FALSE(answer.ok()) << bytes;
    EXPECT_EQ(answer.failure().code, errc::protocol) << bytes;
  }
  for (const char* bytes : {"+OK\r\n", ":2\r\n", ":-1\r\n", "$1\r\n1\r\n", "*0\r\n"}) {
    EXPECT_FALSE(read_renew(reply_of(bytes)).ok()) << bytes;
    EXPECT_FALSE(read_forget(reply_of(bytes)).ok()) << bytes;
  }
  for (const char* bytes : {":0\r\n", ":2\r\n", "*1\r\n:1\r\n", "*2\r\n:1\r\n:1\r\n", "*3\r\n:2\r\n:1\r\n:0\r\n",
                            "*3\r\n:1\r\n:2\r\n:0\r\n", "*3\r\n:1\r\n:1\r\n:2\r\n", "*3\r\n:1\r\n$1\r\n1\r\n:0\r\n"}) {
    EXPECT_FALSE(read_release(reply_of(bytes)).ok()) << bytes;
  }
  for (const char* bytes : {"*3\r\n$-1\r\n:-2\r\n$-1\r\n", "*4\r\n:1\r\n:-2\r\n$-1\r\n:0\r\n",
                            "*4\r\n$-1\r\n:-3\r\n$-1\r\n:0\r\n", "*4\r\n$-1\r\n:-2\r\n$3\r\n7 x\r\n:0\r\n",
                            "*4\r\n$-1\r\n:-2\r\n$-1\r\n:-1\r\n", "*4\r\n$-1\r\n:-2\r\n$-1\r\n$1\r\n0\r\n",
                            "*4\r\n$-1\r\n$2\r\n-2\r\n$-1\r\n:0\r\n", "*4\r\n$-1\r\n:-2\r\n:7\r\n:0\r\n"}) {
    const auto answer = read_inspect(reply_of(bytes), "x");
    ASSERT_FALSE(answer.ok()) << bytes;
    EXPECT_EQ(answer.failure().code, errc::protocol);
  }
}

TEST(Answers, ToAReleaseSayWhatTheyKnow) {
  const auto answer = [](const char* bytes) { return read_release(reply_of(bytes)).value(); };
  EXPECT_TRUE(answer("*3\r\n:1\r\n:1\r\n:0\r\n").may_publish);
  EXPECT_FALSE(answer("*3\r\n:1\r\n:0\r\n:0\r\n").may_publish);
  EXPECT_TRUE(answer("*3\r\n:1\r\n:1\r\n:1\r\n").more);
  EXPECT_FALSE(answer("*3\r\n:1\r\n:1\r\n:0\r\n").more);
}

TEST(Answers, OfTheGreatestTokenAreGood) {
  EXPECT_EQ(read_acquire(reply_of("$19\r\n9223372036854775807\r\n")).value().token, FencingToken(9223372036854775807U));
}

TEST(Answers, ThatAreErrorsMeanWhatTheErrorMeans) {
  EXPECT_EQ(read_acquire(reply_of("-LOADING later\r\n")).failure().code, errc::unavailable);
  EXPECT_EQ(read_renew(reply_of("-NOPERM no\r\n")).failure().code, errc::access_denied);
}

TEST(InspectAnswer, TellsHolderTokenAndWaiters) {
  auto info = read_inspect(reply_of("*4\r\n$3\r\nc:1\r\n:1500\r\n$24\r\n17 c:1 host:7:my program\r\n:2\r\n"), "x");
  ASSERT_TRUE(info.ok()) << info.failure().detail;
  EXPECT_TRUE(info.value().held);
  EXPECT_EQ(info.value().holder, "host:7:my program");
  EXPECT_EQ(info.value().token, FencingToken(17));
  EXPECT_EQ(info.value().remaining, 1500ms);
  EXPECT_EQ(info.value().waiters, 2U);
}

TEST(InspectAnswer, RemembersTheTokenOfAFreeLockAndNoHolder) {
  auto info = read_inspect(reply_of("*4\r\n$-1\r\n:-2\r\n$12\r\n17 c:1 host:\r\n:0\r\n"), "x");
  ASSERT_TRUE(info.ok());
  EXPECT_FALSE(info.value().held);
  EXPECT_EQ(info.value().holder, "");
  EXPECT_EQ(info.value().token, FencingToken(17));
}

TEST(InspectAnswer, DoesNotNameTheLastHolderForAForeignOne) {
  auto info = read_inspect(reply_of("*4\r\n$7\r\nforeign\r\n:-1\r\n$12\r\n17 c:1 host:\r\n:0\r\n"), "x");
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

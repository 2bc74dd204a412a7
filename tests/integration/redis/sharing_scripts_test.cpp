// The scripts of read-write locks and semaphores by themselves, on a real server.
#include <algorithm>

#include "redis/sharing_fixture.hpp"

namespace dlock::test {

namespace {

// --- Read-write locks ------------------------------------------------------------------------------------------------

TEST_F(SharingTest, ReadersEnterTogetherAndAWriterAlone) {
  EXPECT_GT(token_in(read("a:1")), 0U);
  EXPECT_GT(token_in(read("b:1")), 0U);
  EXPECT_TRUE(is_busy(write("c:1")));
  (void)leave("a:1");
  EXPECT_TRUE(is_busy(write("c:1")));
  (void)leave("b:1");
  EXPECT_GT(token_in(write("c:1")), 0U);
  EXPECT_TRUE(is_busy(read("a:2")));
  EXPECT_TRUE(is_busy(write("a:2")));
}

TEST_F(SharingTest, TokensGrowWithEachGrantAndStayWithItsOwner) {
  const auto first = token_in(read("a:1"));
  const auto second = token_in(read("b:1"));
  EXPECT_GT(second, first);
  EXPECT_EQ(token_in(read("a:1")), first);
  (void)leave("a:1");
  (void)leave("b:1");
  EXPECT_GT(token_in(write("c:1")), second);
}

TEST_F(SharingTest, TokensGrowWhenTheClockWasSetBack) {
  (void)read("a:1");
  (void)server.command({"HSET", keys.fence, "last", "4000000000000000"});
  EXPECT_EQ(token_in(read("b:1")), 4'000'000'000'000'001U);
  EXPECT_EQ(token_in(read("c:1")), 4'000'000'000'000'002U);
}

TEST_F(SharingTest, ADeadReadersLeaseEndsWhileOthersRenewTheirs) {
  (void)read("dead:1");
  (void)read("b:1");
  let_pass("dead:1", 30'000);
  EXPECT_EQ(extend("b:1").integer, 1);
  EXPECT_EQ(extend("dead:1").integer, 0) << "nothing is revived";
  (void)leave("b:1");
  EXPECT_GT(token_in(write("c:1")), 0U);
  EXPECT_EQ(inside(), Inside{"c:1"});
  EXPECT_EQ(server.command({"HGET", keys.fence, "dead:1"}).text, "");
}

TEST_F(SharingTest, ARenewalCountsFromNowAndTouchesNobodyElse) {
  (void)read("a:1", {.lease_ms = 5'000});
  (void)read("b:1", {.lease_ms = 5'000});
  EXPECT_EQ(extend("a:1", 60'000).integer, 1);
  EXPECT_EQ(holders(), (std::vector<std::string>{"b:1", "a:1"}));
  EXPECT_GT(server.command({"PTTL", keys.lock}).integer, 60'000);
  EXPECT_EQ(extend("c:1").integer, 0);
  EXPECT_EQ(inside(), (Inside{"a:1", "b:1"}));
}

TEST_F(SharingTest, NobodyEntersBeforeAWriterWhoWaitsAndNeighbouringReadersEnterTogether) {
  RedisConnection one = subscribe("dlock:w:a");
  RedisConnection two = subscribe("dlock:w:b");
  (void)read("x:1");
  EXPECT_EQ(rank_in(write("a:1", {.mode = "queue"})), 0);
  EXPECT_TRUE(is_busy(read("x:2"))) << "a try of a reader while a writer waits";
  EXPECT_EQ(rank_in(read("b:2", {.mode = "queue"})), 1);
  EXPECT_EQ(rank_in(read("b:3", {.mode = "queue"})), 2);
  EXPECT_EQ(rank_in(write("a:4", {.mode = "queue"})), 3);
  EXPECT_EQ(rank_in(read("b:5", {.mode = "queue"})), 4);
  (void)leave("x:1");
  EXPECT_EQ(inside(), Inside{"a:1"});
  EXPECT_EQ(next_grant(one), "a:1");
  (void)write("a:1");
  (void)leave("a:1");
  EXPECT_EQ(inside(), (Inside{"b:2", "b:3"}));
  EXPECT_EQ(next_grant(two), "b:2");
  EXPECT_EQ(next_grant(two), "b:3");
  EXPECT_EQ(waiters(), 2);
}

TEST_F(SharingTest, AWriterWhoLeavesTheQueueLetsTheReadersBehindItIn) {
  RedisConnection one = subscribe("dlock:w:a");
  (void)read("x:1");
  (void)write("x:2", {.mode = "blind"});
  (void)read("a:3", {.mode = "queue"});
  EXPECT_EQ(verdict_in(leave("x:2", "leave")), -1);
  EXPECT_EQ(inside(), (Inside{"x:1", "a:3"}));
}

TEST_F(SharingTest, AWriterWhoDiedWaitingKeepsNoReaderOut) {
  (void)read("x:1");
  (void)write("gone:2", {.mode = "queue"});  // nobody hears its channel
  EXPECT_GT(token_in(read("x:3")), 0U);
  EXPECT_EQ(waiters(), 0);
  (void)write("stopped:4", {.mode = "blind"});
  (void)server.command({"ZADD", keys.alive, "-1000", "stopped:4"});  // it was heard of long ago
  EXPECT_GT(token_in(read("x:5", {.mode = "queue"})), 0U);
}

TEST_F(SharingTest, AWriterWhoIsHeardKeepsReadersOut) {
  RedisConnection one = subscribe("dlock:w:a");
  (void)read("x:1");
  (void)write("a:2", {.mode = "queue"});
  EXPECT_TRUE(is_busy(read("x:3")));
  EXPECT_EQ(one.receive().elements.at(2).text.substr(0, 4), "a:2 ") << "it may look";
  EXPECT_EQ(waiters(), 1);
}

TEST_F(SharingTest, AReaderInLineEntersWithThoseBehindItWhenAWritersLeaseEnds) {
  RedisConnection one = subscribe("dlock:w:a");
  (void)write("dead:1");
  for (const std::string value : {"a:2", "a:3", "a:4"}) (void)read(value, {.mode = "queue"});
  let_pass("dead:1", 30'000);
  EXPECT_GT(token_in(read("a:2", {.mode = "queue"})), 0U);
  EXPECT_EQ(inside(), (Inside{"a:2", "a:3", "a:4"}));
}

// --- Marks of writers who do not queue -------------------------------------------------------------------------------

TEST_F(SharingTest, AWritersMarkKeepsReadersOutForItsTime) {
  (void)read("a:1");
  EXPECT_TRUE(is_busy(write("w:1", {.mode = "mark", .alive_ms = 600})));
  const auto kept_out = read("b:1");
  ASSERT_TRUE(is_busy(kept_out));
  EXPECT_GT(free_in(kept_out), 0);
  EXPECT_LE(free_in(kept_out), 600);
  EXPECT_EQ(extend("a:1").integer, 1);
  (void)server.command({"HSET", keys.fence, "mark", "1000 w:1"});  // as if its time had passed
  EXPECT_GT(token_in(read("b:1")), 0U);
}

TEST_F(SharingTest, AMarkGoesWithItsWriter) {
  (void)read("a:1");
  (void)write("w:1", {.mode = "mark", .alive_ms = 60'000});
  (void)write("w:2", {.mode = "mark", .alive_ms = 60'000});
  (void)leave("w:2", "leave");
  EXPECT_TRUE(is_busy(read("b:1"))) << "the mark is the first one's";
  (void)leave("w:1", "leave");
  EXPECT_GT(token_in(read("b:1")), 0U);
  (void)write("w:1", {.mode = "mark", .alive_ms = 60'000});
  (void)leave("a:1");
  (void)leave("b:1");
  EXPECT_GT(token_in(write("w:1", {.mode = "mark"})), 0U);
  (void)leave("w:1");
  EXPECT_GT(token_in(read("b:2")), 0U);
}

// --- Semaphores ------------------------------------------------------------------------------------------------------

TEST_F(SharingTest, NoMoreThanAllPermitsAreOut) {
  EXPECT_GT(token_in(take("a:1", 2)), 0U);
  EXPECT_GT(token_in(take("b:1", 2)), 0U);
  EXPECT_TRUE(is_busy(take("c:1", 2)));
  EXPECT_GT(token_in(take("a:1", 2)), 0U) << "the same one again";
  (void)leave("a:1");
  EXPECT_GT(token_in(take("c:1", 2)), 0U);
  EXPECT_TRUE(is_busy(take("a:2", 2)));
}

TEST_F(SharingTest, AReleaseOfALostPermitFreesNothing) {
  (void)take("a:1", 1);
  let_pass("a:1", 30'000);
  EXPECT_EQ(verdict_in(leave("a:1")), -1);
  (void)take("a:2", 1);
  let_pass("a:2", 30'000);
  EXPECT_GT(token_in(take("b:1", 1)), 0U);
  EXPECT_EQ(verdict_in(leave("a:2")), -1);
  EXPECT_EQ(inside(), Inside{"b:1"});
}

TEST_F(SharingTest, PermitsGoToThoseWhoWaitInTheirOrder) {
  RedisConnection one = subscribe("dlock:w:a");
  (void)take("x:1", 2);
  (void)take("x:2", 2);
  for (const std::string value : {"a:1", "a:2", "a:3"}) EXPECT_TRUE(is_busy(take(value, 2, {.mode = "queue"})));
  EXPECT_TRUE(is_busy(take("y:1", 2)));
  (void)leave("x:1");
  EXPECT_EQ(inside(), (Inside{"x:2", "a:1"}));
  EXPECT_TRUE(is_busy(take("y:1", 2)));
  let_pass("x:2", 30'000);
  EXPECT_TRUE(is_busy(take("a:3", 2, {.mode = "queue"}))) << "it helps the one before it";
  EXPECT_EQ(inside(), (Inside{"a:1", "a:2"}));
  EXPECT_EQ(next_grant(one), "a:1");
  EXPECT_EQ(next_grant(one), "a:2");
}

TEST_F(SharingTest, AnotherNumberOfPermitsIsRefusedWhileTheyAreHeldOrWaitedFor) {
  RedisConnection one = subscribe("dlock:w:a");
  const auto refused = [&](const std::string& value, int permits) {
    const auto reply = take(value, permits, {.mode = "queue"});
    return reply.elements.size() == 2 && reply.elements[1].integer == 1;
  };
  (void)take("x:1", 1);
  EXPECT_TRUE(refused("y:1", 2));
  (void)take("a:1", 1, {.mode = "queue"});
  let_pass("x:1", 30'000);
  EXPECT_TRUE(refused("y:1", 2)) << "it is the turn of the one who waits";
  EXPECT_EQ(inside(), Inside{"a:1"});
  (void)leave("a:1", "leave");
  EXPECT_EQ(waiters(), 0);
  EXPECT_GT(token_in(take("y:1", 2)), 0U);
  EXPECT_GT(token_in(take("y:2", 2)), 0U);
}

TEST_F(SharingTest, WhoIsRefusedTellsTheNextInLineToWatchTheOneItLetIn) {
  RedisConnection one = subscribe("dlock:w:a");
  RedisConnection two = subscribe("dlock:w:b");
  (void)take("x:1", 1);
  (void)take("a:1", 1, {.mode = "queue"});
  (void)take("b:1", 1, {.mode = "queue"});
  let_pass("x:1", 30'000);
  EXPECT_EQ(take("y:1", 2).elements.size(), 2U) << "refused";
  EXPECT_EQ(inside(), Inside{"a:1"});
  const std::string text = two.receive().elements.at(2).text;
  EXPECT_TRUE(text.starts_with("b:1 ")) << text << ": or nobody finds out that a:1 does not come";
}

TEST_F(SharingTest, PermitsThatNobodyHasAreNotRefusedForTheSakeOfWaitersThatAreGone) {
  RedisConnection stopped = subscribe("dlock:w:s");
  (void)take("x:1", 1);
  for (int i = 0; i < 3; ++i) (void)take("s:" + std::to_string(i), 1, {.mode = "queue"});
  (void)leave("x:1");
  EXPECT_EQ(inside(), Inside{"s:0"});
  let_pass("s:0", 1'000);
  const auto reply = take("y:1", 2);
  ASSERT_EQ(reply.elements.size(), 5U) << "no refusal";
  EXPECT_EQ(free_in(reply), -2) << "there is more to do";
  EXPECT_EQ(rank_in(reply), -1);
  EXPECT_GT(token_in(take("y:1", 2)), 0U);
}

// --- Crowds ----------------------------------------------------------------------------------------------------------

TEST_F(SharingTest, ACrowdOfReadersIsLetInByBoundedSteps) {
  RedisConnection one = subscribe("dlock:w:a");
  (void)write("x:1");
  for (int i = 0; i < 150; ++i) (void)read("a:" + std::to_string(i), {.mode = "queue"});
  server.reset_counts();
  const auto reply = leave("x:1");
  EXPECT_EQ(verdict_in(reply), 1);
  EXPECT_EQ(reply.elements.at(2).integer, 1) << "there is more to do";
  EXPECT_EQ(inside().size(), 64U);
  EXPECT_LE(published(), 65);
  (void)read("a:0", {.mode = "queue"});  // confirms, and goes on
  EXPECT_EQ(inside().size(), 128U);
  (void)leave("x:1");
  EXPECT_EQ(inside().size(), 150U);
  EXPECT_EQ(waiters(), 0);
}

TEST_F(SharingTest, ADeadClientsWaitersAreAskedForOnceAndGo) {
  RedisConnection one = subscribe("dlock:w:a");
  (void)take("x:1", 1);
  for (int i = 0; i < 300; ++i) (void)take("gone:" + std::to_string(i), 1, {.mode = "queue"});
  (void)take("a:1", 1, {.mode = "queue"});
  server.reset_counts();
  (void)leave("x:1");
  EXPECT_EQ(inside(), Inside{"a:1"});
  EXPECT_LE(published(), 3);
  EXPECT_EQ(server.command({"ZCARD", keys.alive}).integer, 1) << "the mark of the one who has to confirm";
}

TEST_F(SharingTest, AClientThatLetItsTimePassLosesAllItsPlaces) {
  RedisConnection stopped = subscribe("dlock:w:s");
  RedisConnection one = subscribe("dlock:w:a");
  (void)take("x:1", 2);
  (void)take("x:2", 2);
  for (int i = 0; i < 5; ++i) (void)take("s:" + std::to_string(i), 2, {.mode = "queue"});
  (void)take("a:1", 2, {.mode = "queue"});
  (void)leave("x:1");
  EXPECT_EQ(inside(), (Inside{"s:0", "x:2"}));
  let_pass("s:0", 1'000);
  for (int i = 0; i < 3 && inside() != Inside{"a:1", "x:2"}; ++i) (void)take("a:1", 2, {.mode = "queue"});
  EXPECT_EQ(inside(), (Inside{"a:1", "x:2"}));
  EXPECT_EQ(waiters(), 0);
}

TEST_F(SharingTest, TheNextInLineIsToldToLookWhenTheFirstLeaseEnds) {
  RedisConnection one = subscribe("dlock:w:a");
  RedisConnection two = subscribe("dlock:w:b");
  (void)take("x:1", 1);
  (void)take("a:1", 1, {.mode = "queue"});
  (void)take("b:1", 1, {.mode = "queue"});
  (void)leave("x:1");
  EXPECT_EQ(next_grant(one), "a:1");
  const std::string text = two.receive().elements.at(2).text;
  EXPECT_TRUE(text.starts_with("b:1 ")) << text;
  EXPECT_GT(std::stoi(text.substr(4)), 900);
  EXPECT_LE(std::stoi(text.substr(4)), 1002);
}

// --- Elections -------------------------------------------------------------------------------------------------------

TEST_F(ScriptTest, WhoWatchesAnElectionIsToldOfTheLeaderAndOfItsEnd) {
  RedisConnection watching = subscribe("dlock:w:lock:" + keys.lock);
  RedisConnection waiting = subscribe("dlock:w:b");
  const auto run_for = [&](const std::string& value, const std::string& mode) {
    return run(redis::acquire_script(LockKind::election), {keys.lock, keys.queue, keys.alive, keys.fence},
               {value, "30000", mode, "15000", "1000", "host:1:" + value + "\n10.0.0.7:80", "0"});
  };
  const auto messages = [&](int expected) {  // a message of the test's own comes last
    (void)server.command({"PUBLISH", "dlock:w:lock:" + keys.lock, "end"});
    int count = 0;
    while (watching.receive().elements.at(2).text != "end") ++count;
    EXPECT_EQ(count, expected);
  };
  EXPECT_GT(token_in(run_for("a:1", "queue")), 0U);
  messages(1);
  EXPECT_TRUE(is_busy(run_for("b:1", "queue")));
  messages(0);
  (void)release("a:1");
  messages(0);  // it is handed on, and not confirmed yet
  EXPECT_EQ(holder(), "b:1");
  EXPECT_GT(token_in(run_for("b:1", "queue")), 0U);
  messages(1);
  EXPECT_TRUE(server.command({"GET", keys.fence}).text.ends_with(" b:1 host:1:b:1\n10.0.0.7:80"));
  (void)release("b:1");
  messages(1);
}

// --- What is there already -------------------------------------------------------------------------------------------

TEST_F(SharingTest, KeysOfAnotherKindAreRefusedAndNeverTouched) {
  const auto refuses = [&] {
    return read("a:1", {.mode = "queue"}).text.starts_with("WRONGTYPE") &&
           take("a:1", 2).text.starts_with("WRONGTYPE") && waiters() == 0;
  };
  (void)acquire("c:1");  // a plain lock
  EXPECT_TRUE(refuses());
  EXPECT_TRUE(leave("c:1").text.starts_with("WRONGTYPE"));
  EXPECT_EQ(holder(), "c:1");
  (void)server.command({"FLUSHALL"});
  (void)server.command({"ZADD", keys.lock, "1", "somebody's", "4000000000000", "data"});
  EXPECT_TRUE(refuses());
  EXPECT_EQ(verdict_in(leave("a:1", "leave")), -1);
  EXPECT_EQ(server.command({"ZCARD", keys.lock}).integer, 2);
  (void)server.command({"FLUSHALL"});
  (void)read("c:1");
  EXPECT_TRUE(take("a:1", 2).text.starts_with("WRONGTYPE"));
  EXPECT_TRUE(acquire("c:1").text.starts_with("WRONGTYPE"));
  EXPECT_EQ(inside(), Inside{"c:1"});
  (void)server.command({"FLUSHALL"});
  (void)take("c:1", 2);
  EXPECT_TRUE(read("a:1").text.starts_with("WRONGTYPE"));
  EXPECT_TRUE(write("a:1").text.starts_with("WRONGTYPE"));
}

TEST_F(SharingTest, NothingStaysForever) {
  (void)read("a:1", {.lease_ms = 5'000});
  (void)write("b:1", {.mode = "queue"});
  EXPECT_GT(server.command({"PTTL", keys.lock}).integer, 5'000);
  EXPECT_LE(server.command({"PTTL", keys.lock}).integer, 35'000);
  for (const std::string& key : {keys.queue, keys.alive, keys.fence}) {
    EXPECT_GT(server.command({"PTTL", key}).integer, 0) << key;
  }
  (void)leave("b:1", "leave");
  (void)leave("a:1");
  EXPECT_EQ(server.command({"EXISTS", keys.lock, keys.queue, keys.alive}).integer, 0);
}

// Holders that nobody removed one by one have left their fields.
TEST_F(SharingTest, TheRecordIsEmptiedWhenALockIsTakenAnew) {
  (void)read("a:1");
  (void)read("b:1");
  (void)server.command({"DEL", keys.lock});  // as it expires
  (void)read("c:1");
  EXPECT_EQ(server.command({"HLEN", keys.fence}).integer, 3) << "last, permits and c:1";
}

TEST_F(SharingTest, OnlyWhatIsLongUnusedIsForgotten) {
  const auto forget = [&](const std::string& idle_us) {
    return run(redis::forget_script(kind), {keys.lock, keys.queue, keys.fence}, {idle_us}).integer;
  };
  EXPECT_EQ(forget("0"), 0);
  (void)read("a:1");
  EXPECT_EQ(forget("0"), 0) << "it is held";
  (void)write("b:1", {.mode = "blind"});
  let_pass("a:1", 30'000);
  EXPECT_EQ(forget("0"), 0) << "it has waiters";
  (void)leave("b:1", "leave");
  (void)leave("b:1", "leave");
  EXPECT_EQ(forget("60000000"), 0) << "it was taken just now";
  EXPECT_EQ(forget("0"), 1);
  EXPECT_EQ(server.command({"EXISTS", keys.lock, keys.queue, keys.alive, keys.fence}).integer, 0);
}

TEST_F(SharingTest, WithoutMemoryAnAcquireChangesNothingAndAReleaseStillLetsOthersIn) {
  RedisConnection one = subscribe("dlock:w:a");
  (void)write("x:1");
  (void)read("a:1", {.mode = "queue"});
  (void)server.command({"CONFIG", "SET", "maxmemory", "1"});
  EXPECT_TRUE(read("y:1", {.mode = "queue"}).text.starts_with("OOM"));
  EXPECT_EQ(verdict_in(leave("x:1")), 1);
  EXPECT_EQ(inside(), Inside{"a:1"});
}

}  // namespace

}  // namespace dlock::test

// The scripts by themselves, on a real server: what each does to the keys, step by step.
#include "redis/script_fixture.hpp"

namespace dlock::test {

namespace {

constexpr std::int64_t day = 24 * 3600;

TEST_F(ScriptTest, TheServerKnowsEachByTheHashThatIsWrittenDown) {
  for (const LockKind kind : {LockKind::lock, LockKind::read_write, LockKind::semaphore, LockKind::election}) {
    for (const Script* script : {&redis::acquire_script(kind), &redis::renew_script(kind), &redis::release_script(kind),
                                 &redis::inspect_script(kind), &redis::forget_script(kind),
                                 &redis::acquire_script(kind, true), &redis::release_script(kind, true)}) {
      EXPECT_EQ(server.command({"SCRIPT", "LOAD", std::string(script->text)}).text, script->sha1) << script->name;
    }
  }
}

// --- One holder ------------------------------------------------------------------------------------------------------

TEST_F(ScriptTest, ALockIsItsValueAndItsLeaseAndNothingElse) {  // H1
  EXPECT_GT(token_in(acquire("c:1")), 0U);
  EXPECT_EQ(server.command({"TYPE", keys.lock}).text, "string");
  EXPECT_EQ(holder(), "c:1");
  const auto left = server.command({"PTTL", keys.lock}).integer;
  EXPECT_GT(left, 20'000);
  EXPECT_LE(left, 30'000);
}

TEST_F(ScriptTest, NothingStaysForever) {
  (void)acquire("c:1");
  (void)acquire("c:2", "queue");
  EXPECT_GT(server.command({"PTTL", keys.queue}).integer, 0);
  EXPECT_LE(server.command({"PEXPIRETIME", keys.alive}).integer - server.command({"PEXPIRETIME", keys.queue}).integer,
            1)
      << "a queue whose waiters nobody knows to be alive";
  EXPECT_GT(server.command({"TTL", keys.fence}).integer, 29 * day);
  EXPECT_LE(server.command({"TTL", keys.fence}).integer, 30 * day);
  (void)release("c:2", "leave");
  (void)release("c:1");
  EXPECT_EQ(server.command({"EXISTS", keys.lock, keys.queue, keys.alive}).integer, 0);
}

TEST_F(ScriptTest, RepeatingAnAcquireChangesNothingButTheLease) {  // H13
  const auto token = token_in(acquire("c:1", "try", 15'000, 5'000));
  EXPECT_EQ(token_in(acquire("c:1", "try", 15'000, 30'000)), token);
  EXPECT_EQ(token_in(acquire("c:1", "queue")), token);
  EXPECT_GT(server.command({"PTTL", keys.lock}).integer, 20'000);
  EXPECT_EQ(waiters(), 0);
}

TEST_F(ScriptTest, AReleaseOfAnotherOwnerTouchesNothing) {  // H2
  (void)acquire("c:1");
  EXPECT_EQ(verdict_in(release("c:2")), 0);
  EXPECT_EQ(holder(), "c:1");
  EXPECT_EQ(verdict_in(release("c:1")), 1);
  EXPECT_EQ(verdict_in(release("c:1")), -1);
}

TEST_F(ScriptTest, ARenewalNeverBringsALockBackAndNeverExtendsAnotherOwners) {  // H4
  EXPECT_EQ(renew("c:1").integer, 0);
  EXPECT_EQ(server.command({"EXISTS", keys.lock}).integer, 0);
  (void)acquire("c:2", "try", 15'000, 5'000);
  EXPECT_EQ(renew("c:1", 60'000).integer, 0);
  EXPECT_LE(server.command({"PTTL", keys.lock}).integer, 5'000);
  EXPECT_EQ(renew("c:2", 60'000).integer, 1);
  EXPECT_GT(server.command({"PTTL", keys.lock}).integer, 5'000);
}

TEST_F(ScriptTest, ALockWithoutAnEndIsBusyForever) {
  (void)server.command({"SET", keys.lock, "foreign"});
  const auto reply = acquire("c:1");
  ASSERT_TRUE(is_busy(reply));
  EXPECT_EQ(reply.elements[1].integer, -1);
  EXPECT_EQ(holder(), "foreign");
}

TEST_F(ScriptTest, AKeyOfAnotherTypeIsNeverTouched) {  // H31
  (void)server.command({"HSET", keys.lock, "field", "data"});
  EXPECT_TRUE(acquire("c:1").text.starts_with("WRONGTYPE"));
  EXPECT_TRUE(acquire("c:1", "queue").text.starts_with("WRONGTYPE"));
  EXPECT_TRUE(release("c:1", "leave").text.starts_with("WRONGTYPE"));
  EXPECT_TRUE(renew("c:1").text.starts_with("WRONGTYPE"));
  EXPECT_EQ(server.command({"HGET", keys.lock, "field"}).text, "data");
  EXPECT_EQ(waiters(), 0);
}

// --- Tokens ----------------------------------------------------------------------------------------------------------

TEST_F(ScriptTest, TokensGrowAndAreTheServersTimeAtLeast) {  // H10, H12
  const auto time = server.command({"TIME"});
  std::uint64_t last = std::stoull(time.elements[0].text) * 1'000'000 + std::stoull(time.elements[1].text);
  for (int i = 0; i < 50; ++i) {
    const std::string value = "c:" + std::to_string(i);
    const auto token = token_in(acquire(value));
    EXPECT_GT(token, last);
    last = token;
    if (i % 10 == 0) (void)server.command({"DEL", keys.fence});  // lost
    (void)release(value);
  }
}

TEST_F(ScriptTest, TokensGrowWhenTheClockWasSetBack) {  // H12
  const std::string future = "4000000000000000";
  (void)server.command({"SET", keys.fence, future + " c:0 host:1:x"});
  EXPECT_EQ(token_in(acquire("c:1")), 4'000'000'000'000'001U);
  (void)release("c:1");
  EXPECT_EQ(token_in(acquire("c:2")), 4'000'000'000'000'002U);
  (void)release("c:2");
  (void)server.command({"SET", keys.fence, "100000000000000000 c:0 host:1:x"});  // a text below any of today's
  EXPECT_GE(token_in(acquire("c:1")), 100'000'000'000'000'000U);
}

// A server without a clock of its own begins in 1970. Of the numbers of that time many a text is greater than a later
// one's.
TEST_F(ScriptTest, TokensGrowWhereTheClockHasFewerDigits) {
  std::string script(redis::acquire_script().text);
  const std::string now = "call('TIME')";
  ASSERT_NE(script.find(now), std::string::npos);
  script.replace(script.find(now), now.size(), "{'25', '123456'}");
  (void)server.command({"SET", keys.fence, "1795243190100435 c:0 host:1:x"});
  const auto reply = server.command({"EVAL", script, "4", keys.lock, keys.queue, keys.alive, keys.fence, "c:1", "30000",
                                     "try", "15000", "1000", "host:1:test", "0"});
  EXPECT_EQ(token_in(reply), 1'795'243'190'100'436U);
}

TEST_F(ScriptTest, ATokenIsWrittenOutInFull) {  // H6
  const auto reply = acquire("c:1");
  EXPECT_EQ(reply.text.find_first_not_of("0123456789"), std::string::npos);
  const std::string record = server.command({"GET", keys.fence}).text;
  EXPECT_EQ(record, reply.text + " c:1 host:1:test");
}

// It says who holds the lock, and `list` finds the lock by it.
TEST_F(ScriptTest, TheRecordOfATokenOutlivesEveryLease) {
  const auto left = [&] { return server.command({"TTL", keys.fence}).integer; };
  (void)acquire("c:1");
  const auto prolonged_from = [&](std::int64_t days) {
    (void)server.command({"EXPIRE", keys.fence, std::to_string(days * day + 10)});
    const auto before = left();
    EXPECT_EQ(renew("c:1").integer, 1);
    return left() > before;
  };
  EXPECT_TRUE(prolonged_from(1));
  EXPECT_TRUE(prolonged_from(28));
  EXPECT_FALSE(prolonged_from(29)) << "once a day is enough";
  (void)server.command({"EXPIRE", keys.fence, std::to_string(day)});
  EXPECT_EQ(renew("c:2").integer, 0);
  EXPECT_LE(left(), day) << "not by others";
  (void)server.command({"PERSIST", keys.fence});
  EXPECT_EQ(renew("c:1").integer, 1);
  EXPECT_EQ(left(), -1);
  (void)server.command({"DEL", keys.fence});
  EXPECT_EQ(renew("c:1").integer, 1);
  EXPECT_EQ(server.command({"EXISTS", keys.fence}).integer, 0);
}

TEST_F(ScriptTest, ATokenThatWasLostWhileHeldIsReplacedAndNeverZero) {
  const auto token = token_in(acquire("c:1"));
  (void)server.command({"DEL", keys.fence});
  const auto again = token_in(acquire("c:1"));
  EXPECT_GT(again, token);
  EXPECT_EQ(token_in(acquire("c:1")), again);
}

TEST_F(ScriptTest, SenselessContentOfTheTokensKeyDoesNotStopTokens) {
  for (const std::string content : {"", "abc", "-7 c:1 x", "12"}) {
    (void)server.command({"SET", keys.fence, content});
    EXPECT_GT(token_in(acquire("c:1")), 1'000'000'000'000'000U) << content;
    (void)release("c:1");
  }
}

// --- The queue -------------------------------------------------------------------------------------------------------

TEST_F(ScriptTest, WaitersAreServedInTheirOrderAndEachIsWokenOnce) {  // H25
  auto a = subscribe("dlock:w:a");
  auto b = subscribe("dlock:w:b");
  (void)acquire("c:1");
  EXPECT_EQ(acquire("a:1", "queue").elements.at(2).integer, 0);
  EXPECT_EQ(acquire("b:1", "queue").elements.at(2).integer, 1);
  EXPECT_EQ(acquire("a:2", "queue").elements.at(2).integer, 2);
  EXPECT_EQ(acquire("b:1", "queue").elements.at(2).integer, 1) << "asking again keeps the place";
  for (const std::string next : {"a:1", "b:1", "a:2"}) {
    (void)release(holder());
    EXPECT_EQ(holder(), next);
    EXPECT_EQ(next_grant(next.front() == 'a' ? a : b), next);
    EXPECT_GT(token_in(acquire(next, "queue")), 0U);
  }
  EXPECT_EQ(waiters(), 0);
  (void)release("a:2");
  EXPECT_EQ(holder(), "");
}

TEST_F(ScriptTest, AGrantLastsUntilItIsConfirmedOrItsTimeIsOver) {
  auto a = subscribe("dlock:w:a");
  (void)acquire("c:1");
  (void)acquire("a:1", "queue");
  (void)release("c:1");
  EXPECT_LE(server.command({"PTTL", keys.lock}).integer, 1'000);
  EXPECT_GT(token_in(acquire("a:1", "queue")), 0U);
  EXPECT_GT(server.command({"PTTL", keys.lock}).integer, 20'000);
}

TEST_F(ScriptTest, NobodyOvertakesAWaiterThatLives) {
  auto a = subscribe("dlock:w:a");
  (void)acquire("c:1");
  (void)acquire("a:1", "queue");
  (void)server.command({"DEL", keys.lock});  // it ran out, which tells nobody
  EXPECT_TRUE(is_busy(acquire("c:2")));
  EXPECT_EQ(holder(), "a:1") << "whoever comes helps the first in line";
  EXPECT_EQ(a.receive().elements.at(2).text, "a:1");
  EXPECT_EQ(waiters(), 0);
}

// An expiry tells nobody, so somebody has to look.
TEST_F(ScriptTest, WhoeverGetsTheLockIsWatchedByTheNext) {
  auto a = subscribe("dlock:w:a");
  auto b = subscribe("dlock:w:b");
  (void)acquire("c:1");
  (void)acquire("a:1", "queue");
  (void)acquire("b:1", "queue");
  (void)acquire("a:2", "queue");
  (void)release("c:1");
  EXPECT_EQ(a.receive().elements.at(2).text, "a:1");
  EXPECT_EQ(b.receive().elements.at(2).text, "b:1 1000") << "until then, a:1 has to confirm";
  EXPECT_GT(token_in(acquire("a:1", "queue", 15'000, 300)), 0U);
  EXPECT_EQ(b.receive().elements.at(2).text, "b:1 300") << "its lease ends before that";
  (void)server.command({"DEL", keys.lock});
  EXPECT_GT(token_in(acquire("b:1", "queue")), 0U);
  EXPECT_EQ(a.receive().elements.at(2).text, "a:2 30000");
}

// Where one of them is dead or stopped, all of its client are.
TEST_F(ScriptTest, TheFirstOfAnotherClientWatches) {
  auto a = subscribe("dlock:w:a");
  auto b = subscribe("dlock:w:b");
  (void)acquire("c:1");
  for (int i = 0; i < 40; ++i) (void)acquire("a:" + std::to_string(i), "queue");
  (void)acquire("gone:1", "queue");
  (void)acquire("b:1", "queue");
  (void)acquire("b:2", "queue");
  (void)release("c:1");
  EXPECT_EQ(b.receive().elements.at(2).text, "b:1 1000");
}

TEST_F(ScriptTest, WhereThereIsNoOtherClientTheFirstInLineWatches) {
  auto a = subscribe("dlock:w:a");
  (void)acquire("c:1");
  for (int i = 0; i < 40; ++i) (void)acquire("a:" + std::to_string(i), "queue");
  (void)acquire("gone:1", "queue");
  server.reset_counts();
  (void)release("c:1");
  EXPECT_EQ(a.receive().elements.at(2).text, "a:0");
  EXPECT_EQ(a.receive().elements.at(2).text, "a:1 1000");
  EXPECT_LE(published(), 3);
}

// Whoever does not hear is gone or deaf. Of a crowd of them only so many are asked at a time.
TEST_F(ScriptTest, OfThoseBehindEightClientsAreAskedWhetherTheyWatch) {
  auto first = subscribe("dlock:w:c");
  for (const auto& [hears, told] : {std::pair("w8", "w8:1 1000"), std::pair("w9", "the end")}) {
    (void)server.command({"FLUSHALL"});
    auto subscribed = subscribe(std::string("dlock:w:") + hears);
    (void)acquire("h:1");
    (void)acquire("c:1", "queue");
    for (int i = 1; i <= 9; ++i) (void)acquire("w" + std::to_string(i) + ":1", "queue");
    (void)release("h:1");
    EXPECT_EQ(holder(), "c:1");
    (void)server.command({"PUBLISH", std::string("dlock:w:") + hears, "the end"});
    EXPECT_EQ(subscribed.receive().elements.at(2).text, told);
  }
}

TEST_F(ScriptTest, ATryHasNoTicket) {
  (void)acquire("a:1");
  const RedisReply reply = acquire("b:1", "try");
  ASSERT_TRUE(is_busy(reply));
  EXPECT_EQ(reply.elements[4].integer, 0);
}

TEST_F(ScriptTest, WhenTheFirstInLineLeavesTheNextOneWatches) {
  auto b = subscribe("dlock:w:b");
  (void)acquire("c:1", "try", 15'000, 600'000);
  (void)acquire("a:1", "queue");
  (void)acquire("b:1", "queue");
  (void)release("a:1", "leave");
  const std::string text = b.receive().elements.at(2).text;
  EXPECT_TRUE(text.starts_with("b:1 ")) << text;
  EXPECT_GT(std::stoi(text.substr(4)), 500'000);
}

TEST_F(ScriptTest, AWaiterThatWasCutGetsItsPlaceBack) {
  auto b = subscribe("dlock:w:b");
  (void)acquire("c:1");
  const auto ticket = acquire("cut:1", "queue").elements.at(4).integer;
  EXPECT_GT(ticket, 0);
  EXPECT_GT(acquire("cut:2", "queue").elements.at(4).integer, ticket);
  EXPECT_EQ(acquire("cut:1", "queue").elements.at(4).integer, ticket);
  (void)acquire("b:1", "queue");
  (void)acquire("b:2", "queue");
  (void)release("c:1");
  EXPECT_EQ(holder(), "b:1") << "nobody hears the channel of those before";
  const auto back = acquire("cut:1", "queue", 15'000, 30'000, ticket);
  EXPECT_EQ(back.elements.at(2).integer, 0);
  EXPECT_EQ(back.elements.at(3).integer, 1);
  EXPECT_EQ(back.elements.at(4).integer, ticket);
  // Who is in the queue stays where it is.
  EXPECT_EQ(acquire("b:2", "queue", 15'000, 30'000, 1).elements.at(2).integer, 1);
}

// As a clock does that is set forward by more than the time that a waiter counts as alive without asking.
TEST_F(ScriptTest, WaitersThatASteppedClockMadeDeadComeBack) {
  auto a = subscribe("dlock:w:a");
  (void)acquire("c:1");
  for (const char* value : {"a:1", "a:2", "a:3"}) (void)acquire(value, "queue");
  for (const char* value : {"a:1", "a:2", "a:3"}) (void)server.command({"ZADD", keys.alive, "1", value});
  (void)release("c:1");
  EXPECT_EQ(holder(), "");
  EXPECT_GT(token_in(acquire("a:2", "queue")), 0U);
  for (const char* value : {"a:3", "a:1"}) EXPECT_TRUE(is_busy(acquire(value, "queue")));
  (void)release("a:2");
  EXPECT_EQ(holder(), "a:3");
}

TEST_F(ScriptTest, TheFirstInLineTakesAFreeLock) {
  auto a = subscribe("dlock:w:a");
  (void)acquire("c:1");
  (void)acquire("a:1", "queue");
  (void)server.command({"DEL", keys.lock});
  EXPECT_GT(token_in(acquire("a:1", "queue")), 0U);
  EXPECT_EQ(waiters(), 0) << "or it would be granted to itself again";
  (void)release("a:1");
  EXPECT_EQ(holder(), "");
}

TEST_F(ScriptTest, WaitersOfAClientThatIsGoneArePassedOver) {
  auto b = subscribe("dlock:w:b");
  (void)acquire("c:1");
  (void)acquire("gone:1", "queue");
  (void)acquire("gone:2", "queue");
  (void)acquire("b:1", "queue");
  EXPECT_EQ(verdict_in(release("c:1")), 1);
  EXPECT_EQ(holder(), "b:1");
  EXPECT_EQ(waiters(), 0);
}

TEST_F(ScriptTest, AWaiterThatHearsNothingKeepsItsPlace) {  // H28
  (void)acquire("c:1");
  (void)acquire("deaf:1", "blind");
  (void)release("c:1");
  EXPECT_EQ(holder(), "deaf:1");
  EXPECT_GT(token_in(acquire("deaf:1", "blind")), 0U);
}

TEST_F(ScriptTest, AWaiterThatWasNotHeardOfForLongIsPassedOver) {
  for (const std::string mode : {"queue", "blind"}) {
    auto slow = subscribe("dlock:w:slow");
    auto b = subscribe("dlock:w:b");
    (void)acquire("c:1");
    (void)acquire("slow:1", mode, 1);
    while (server.command({"EXISTS", keys.alive}).integer != 0) {
    }
    // The place is what is left of it here, as if somebody else's question had kept the queue.
    (void)server.command({"ZADD", keys.queue, "1", "slow:1"});
    (void)acquire("b:1", "queue");
    (void)release("c:1");
    EXPECT_EQ(holder(), "b:1") << mode;
    (void)release("b:1");
  }
}

// It hears, and its place is there, but its time is over by the server's clock.
TEST_F(ScriptTest, AWaiterWhoseTimeIsOverIsPassedOverThoughItHears) {
  auto slow = subscribe("dlock:w:slow");
  auto b = subscribe("dlock:w:b");
  (void)acquire("c:1");
  (void)acquire("slow:1", "queue");
  (void)acquire("b:1", "queue");
  const std::string seconds = server.command({"TIME"}).elements.at(0).text;
  (void)server.command({"ZADD", keys.alive, std::to_string((std::stoll(seconds) - 1) * 1000), "slow:1"});
  (void)release("c:1");
  EXPECT_EQ(holder(), "b:1");
}

// Whoever was let in and never said a word is taken for gone, with all its places; where it has none the mark goes.
TEST_F(ScriptTest, TheMarkOfOneWithoutPlacesGoes) {
  auto b = subscribe("dlock:w:b");
  (void)acquire("c:1");
  (void)acquire("b:1", "queue");
  (void)server.command({"ZADD", keys.alive, "-inf", "ghost:1"});
  (void)release_to_the_end("c:1");
  EXPECT_TRUE(server.command({"ZSCORE", keys.alive, "ghost:1"}).is_nil());
  EXPECT_EQ(holder(), "b:1");
}

TEST_F(ScriptTest, AnInspectionCountsThoseWhoWait) {
  const auto waiting = [this] {
    const RedisReply reply = run(redis::inspect_script(), {keys.lock, keys.queue, keys.fence}, {});
    return reply.elements.at(3).integer;
  };
  EXPECT_EQ(waiting(), 0);
  (void)acquire("a:1");
  EXPECT_EQ(waiting(), 0);
  (void)acquire("b:1", "queue");
  (void)acquire("c:1", "queue");
  EXPECT_EQ(waiting(), 2);
}

TEST_F(ScriptTest, OnlyWhatNobodyUsesAndIsOldEnoughIsForgotten) {
  const auto forget = [this](const std::string& idle_us) {
    return run(redis::forget_script(), {keys.lock, keys.queue, keys.fence}, {idle_us}).integer;
  };
  EXPECT_EQ(forget("0"), 0) << "there is nothing";
  (void)acquire("a:1");
  (void)server.command({"DEL", keys.queue});
  EXPECT_EQ(forget("0"), 0) << "it is held";
  (void)acquire("b:1", "queue");
  (void)server.command({"DEL", keys.lock});
  EXPECT_EQ(forget("0"), 0) << "somebody waits";
  (void)server.command({"DEL", keys.queue});
  EXPECT_EQ(forget("3600000000"), 0) << "it was used within the hour";
  EXPECT_EQ(forget("0"), 1);
  EXPECT_EQ(server.command({"EXISTS", keys.fence}).integer, 0);
  (void)server.command({"SET", keys.fence, "somebody's own"});
  EXPECT_EQ(forget("0"), 0) << "that is no record of ours";
}

TEST_F(ScriptTest, LeavingGivesUpThePlaceOrTheLock) {
  auto a = subscribe("dlock:w:a");
  (void)acquire("c:1");
  (void)acquire("a:1", "queue");
  (void)acquire("a:2", "queue");
  EXPECT_EQ(verdict_in(release("a:1", "leave")), 0);
  EXPECT_EQ(waiters(), 1);
  EXPECT_EQ(holder(), "c:1");
  (void)release("c:1");
  EXPECT_EQ(holder(), "a:2");
  // It was granted the lock while it gave up.
  (void)acquire("a:3", "queue");
  EXPECT_EQ(verdict_in(release("a:2", "leave")), 1);
  EXPECT_EQ(holder(), "a:3");
}

TEST_F(ScriptTest, TheFirstInLineThatLeavesAFreeLockLetsTheNextOneIn) {
  auto a = subscribe("dlock:w:a");
  (void)acquire("c:1");
  (void)acquire("a:1", "queue");
  (void)acquire("a:2", "queue");
  (void)server.command({"DEL", keys.lock});
  (void)release("a:1", "leave");
  EXPECT_EQ(holder(), "a:2");
}

TEST_F(ScriptTest, EverybodyIsToldOnlyWhenTheLockIsReallyFree) {
  auto a = subscribe("dlock:w:a");
  auto all = subscribe(redis::lock_channel({}, keys.lock));
  (void)acquire("c:1");
  (void)acquire("a:1", "queue");
  (void)release("c:1");  // handed on: tells nobody else
  (void)release("a:1");
  (void)server.command({"PUBLISH", redis::lock_channel({}, keys.lock), "the second message"});
  EXPECT_EQ(all.receive().elements.at(2).text, "");
  EXPECT_EQ(all.receive().elements.at(2).text, "the second message");
}

// --- Servers in trouble ----------------------------------------------------------------------------------------------

TEST_F(ScriptTest, WithoutMemoryAnAcquireChangesNothingAndAReleaseStillHandsOn) {  // H7
  auto a = subscribe("dlock:w:a");
  (void)acquire("c:1");
  (void)acquire("a:1", "queue");
  (void)server.command({"CONFIG", "SET", "maxmemory", "1"});
  EXPECT_EQ(renew("c:1").integer, 1);
  EXPECT_EQ(verdict_in(release("c:1")), 1);
  EXPECT_EQ(holder(), "a:1");
  EXPECT_EQ(verdict_in(release("a:1")), 1);
  const auto refused = acquire("c:2");
  EXPECT_TRUE(refused.text.starts_with("OOM")) << refused.text;
  (void)server.command({"CONFIG", "SET", "maxmemory", "0"});
  EXPECT_EQ(holder(), "");
  EXPECT_EQ(waiters(), 0);
}

TEST_F(ScriptTest, WithoutReplicasNothingIsAppliedByHalves) {  // H7
  auto a = subscribe("dlock:w:a");
  (void)acquire("c:1");
  (void)acquire("a:1", "queue");
  const auto record = server.command({"GET", keys.fence}).text;
  (void)server.command({"CONFIG", "SET", "min-replicas-to-write", "1"});
  for (const RedisReply& reply : {release("c:1"), renew("c:1"), acquire("c:1"), acquire("b:1", "queue")}) {
    EXPECT_TRUE(reply.text.starts_with("NOREPLICAS")) << reply.text;
  }
  (void)server.command({"CONFIG", "SET", "min-replicas-to-write", "0"});
  EXPECT_EQ(holder(), "c:1");
  EXPECT_EQ(waiters(), 1);
  EXPECT_EQ(server.command({"GET", keys.fence}).text, record);
}

TEST_F(ScriptTest, WithoutTheRightToPublishALockIsHandedOnAllTheSameAndTheAnswerSaysSo) {  // H28
  (void)acquire("c:1");
  (void)acquire("a:1", "queue");
  EXPECT_EQ(release("nobody").elements.at(1).integer, 1);
  forbid_publishing();
  const auto reply = release("c:1");
  EXPECT_EQ(reply.elements.at(0).integer, 1);
  EXPECT_EQ(reply.elements.at(1).integer, 0);
  EXPECT_EQ(holder(), "a:1") << "who is asking anyway, and will find out";
}

TEST_F(ScriptTest, OnlyDeclaredKeysAreTouched) {  // H29
  server.reset_counts();
  (void)acquire("c:1");
  (void)acquire("a:1", "blind");
  (void)release("c:1");
  (void)acquire("a:1", "blind");
  (void)release("a:1", "leave");
  const auto all = server.command({"KEYS", "*"});
  ASSERT_EQ(all.elements.size(), 1U);
  EXPECT_EQ(all.elements[0].text, keys.fence);
}

}  // namespace

}  // namespace dlock::test

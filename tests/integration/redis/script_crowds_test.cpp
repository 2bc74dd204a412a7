// What the scripts do about many waiters that are dead or stand still.
#include "redis/script_fixture.hpp"

namespace dlock::test {

namespace {

TEST_F(ScriptTest, ACrowdOfTheDeadHoldsNobodyUpForLong) {
  (void)acquire("c:1");
  for (int i = 0; i < 1000; ++i) (void)acquire("gone:" + std::to_string(i) + ":1", "queue");
  for (int i = 0; i < 1000; ++i) (void)acquire("gone" + std::to_string(i) + ":1", "queue");
  const auto reply = release("c:1");
  EXPECT_EQ(reply.elements.at(2).integer, 1) << "no single call removes them all";
  EXPECT_GT(waiters(), 1400);
  int calls = 0;
  while (is_busy(acquire("c:2"))) ASSERT_LT(++calls, 20);
  EXPECT_EQ(waiters(), 0);
}

TEST_F(ScriptTest, AReleaseSaysWhetherItHasToBeRepeatedForTheLivingOne) {
  auto b = subscribe("dlock:w:b");
  (void)acquire("c:1");
  for (int i = 0; i < 200; ++i) (void)acquire("gone" + std::to_string(i) + ":1", "queue");
  (void)acquire("b:1", "queue");
  EXPECT_EQ(release_to_the_end("c:1"), 4) << "64 channels a call";
  EXPECT_EQ(holder(), "b:1");
  EXPECT_EQ(waiters(), 0);
}

TEST_F(ScriptTest, AClientThatIsGoneIsAskedForOnceAndAllItsWaitersGoWithIt) {
  auto b = subscribe("dlock:w:b");
  (void)acquire("c:1");
  for (int i = 0; i < 5000; ++i) (void)acquire("gone:" + std::to_string(i), "queue");
  (void)acquire("b:1", "queue");
  server.reset_counts();
  const int calls = release_to_the_end("c:1");
  EXPECT_GE(calls, 9) << "a call that removes all of them holds up the server";
  EXPECT_LE(calls, 12);
  EXPECT_LE(published(), calls + 2) << "once a call, to the living one, and to who watches";
  EXPECT_EQ(holder(), "b:1");
  EXPECT_EQ(waiters(), 0);
  EXPECT_EQ(server.command({"ZCARD", keys.alive}).integer, 1) << "but for the mark of who has to confirm";
}

TEST_F(ScriptTest, AWaiterThatAsksByItselfDoesNotGoWithAClientThatNobodyHears) {  // H28
  (void)acquire("c:1");
  (void)acquire("deaf:1", "queue");
  (void)acquire("deaf:2", "blind");
  EXPECT_EQ(release_to_the_end("c:1"), 1);
  EXPECT_EQ(holder(), "deaf:2");
}

TEST_F(ScriptTest, ACrowdThatWasNotHeardOfForLongIsPassedOver) {
  auto b = subscribe("dlock:w:b");
  (void)acquire("c:1");
  for (int i = 0; i < 2000; ++i) {
    (void)acquire("slow:" + std::to_string(i), "queue");
    (void)server.command({"ZADD", keys.alive, "1", "slow:" + std::to_string(i)});
  }
  (void)acquire("b:1", "queue");
  EXPECT_LE(release_to_the_end("c:1"), 6);
  EXPECT_EQ(holder(), "b:1");
  EXPECT_EQ(waiters(), 0);
}

// --- Clients that stand still ----------------------------------------------------------------------------------------

TEST_F(ScriptTest, AClientThatLetItsTimePassLosesAllItsPlaces) {
  for (const std::string mode : {"queue", "blind"}) {
    auto stopped = subscribe("dlock:w:stopped");
    auto b = subscribe("dlock:w:b");
    (void)acquire("c:1");
    for (int i = 0; i < 20; ++i) {
      (void)acquire("stopped:" + std::to_string(i), mode);
      (void)acquire("b:" + std::to_string(i), "queue");
    }
    (void)release_to_the_end("c:1");
    EXPECT_EQ(holder(), "stopped:0");
    (void)server.command({"DEL", keys.lock});  // its time is over
    while (is_busy(acquire("c:2")) && holder().empty()) {
    }
    EXPECT_EQ(holder(), "b:0") << mode;
    for (int i = 0; i < 20; ++i) {
      EXPECT_GT(token_in(acquire("b:" + std::to_string(i), "queue")), 0U) << mode << i;
      (void)release_to_the_end("b:" + std::to_string(i));
    }
    EXPECT_EQ(waiters(), 0);
  }
}

// Those who ask by themselves find out in time without being told.
TEST_F(ScriptTest, WithoutTheRightToPublishAClientThatLetItsTimePassLosesItsPlacesToo) {
  forbid_publishing();
  (void)acquire("c:1");
  for (int i = 0; i < 20; ++i) (void)acquire("killed:" + std::to_string(i), "blind");
  (void)acquire("b:1", "blind");
  (void)release_to_the_end("c:1");
  EXPECT_EQ(holder(), "killed:0");
  (void)server.command({"DEL", keys.lock});  // its time is over
  int calls = 0;
  while (token_in(acquire("b:1", "blind")) == 0) ASSERT_LT(++calls, 4);
  EXPECT_EQ(waiters(), 0);
}

// Somebody else may tell it, or it may find out too late: that says nothing about its client.
TEST_F(ScriptTest, WithoutTheRightToPublishAWaiterThatWasNotToldIsNotSuspected) {
  forbid_publishing();
  (void)acquire("c:1");
  (void)acquire("a:1", "queue");
  (void)acquire("a:2", "queue");
  (void)release_to_the_end("c:1");
  EXPECT_EQ(holder(), "a:1");
  (void)server.command({"DEL", keys.lock});
  (void)acquire("c:2");
  EXPECT_EQ(holder(), "a:2");
}

TEST_F(ScriptTest, AHugeCrowdOfAClientThatLetItsTimePassGoesInBoundedCalls) {
  auto stopped = subscribe("dlock:w:stopped");
  (void)acquire("c:1");
  for (int i = 0; i < 2000; ++i) (void)acquire("stopped:" + std::to_string(i), "queue");
  (void)release_to_the_end("c:1");
  (void)server.command({"DEL", keys.lock});
  int calls = 0;
  while (is_busy(acquire("c:2"))) ASSERT_LT(++calls, 8);
  EXPECT_GE(calls, 4);
  EXPECT_EQ(waiters(), 0);
}

TEST_F(ScriptTest, AClientThatConfirmedOrGaveUpOrComesLateKeepsItsOtherPlaces) {
  auto a = subscribe("dlock:w:a");
  const auto queue_up = [&] {
    (void)acquire("c:1");
    for (const char* value : {"a:1", "a:2", "a:3"}) (void)acquire(value, "queue");
    (void)release("c:1");
    EXPECT_EQ(holder(), "a:1");
  };
  queue_up();
  EXPECT_GT(token_in(acquire("a:1", "queue")), 0U);
  (void)server.command({"DEL", keys.lock});  // its lease ran out: it was a holder, not a waiter
  (void)acquire("c:2");
  EXPECT_EQ(holder(), "a:2");
  (void)server.command({"FLUSHALL"});

  queue_up();
  EXPECT_EQ(verdict_in(release("a:1", "leave")), 1);
  EXPECT_EQ(holder(), "a:2");
  (void)server.command({"FLUSHALL"});

  queue_up();
  EXPECT_EQ(verdict_in(release("a:1")), 1);  // somebody breaks the lock
  EXPECT_EQ(holder(), "a:2");
  (void)server.command({"FLUSHALL"});

  queue_up();
  (void)server.command({"DEL", keys.lock});
  EXPECT_EQ(acquire("a:1", "queue").elements.at(2).integer, 1) << "behind a:3, as it let its time pass";
  EXPECT_EQ(holder(), "a:2");
}

}  // namespace

}  // namespace dlock::test

// The way of a waiter to the front of the queue, step by step.
#include "backends/zookeeper/strategies/queue_walk.hpp"

#include <gtest/gtest.h>

#include <cstdio>
#include <string>
#include <vector>

namespace dlock::zookeeper {

namespace {

using Next = QueueWalk::Next;

std::string member(const std::string& who, std::int64_t sequence) {
  char digits[16];
  (void)std::snprintf(digits, sizeof digits, "%010d", static_cast<int>(sequence));
  return "_c_" + who + "-lock-" + digits;
}

Queue queue_of(const std::vector<std::string>& children) {
  return judge_queue(Layout::curator, "/dlock/lock", children);
}

class QueueWalkTest : public testing::Test {
 protected:
  QueueWalkTest() { walk.placed(own, {7, 700}); }

  QueueWalk walk;
  const std::string own = member("own", 7);
};

TEST_F(QueueWalkTest, TheLowestNumberHoldsTheLock) {
  EXPECT_EQ(walk.listed(queue_of({member("b", 9), own, member("c", 8)})).next, Next::grant);
}

TEST_F(QueueWalkTest, NumbersAreComparedAsNumbers) {
  EXPECT_TRUE(queue_of({own, "_c_a-lock-0000000010", "_c_b-lock-10000000000"}).problem);
  EXPECT_EQ(walk.listed(queue_of({own, member("zzz", 3)})).next, Next::watch);
}

TEST_F(QueueWalkTest, AWaiterWatchesTheNearestBeforeIt) {
  const auto step = walk.listed(queue_of({member("b", 5), own, member("c", 8), member("a", 3)}));
  EXPECT_EQ(step.next, Next::watch);
  EXPECT_EQ(step.node, member("b", 5));
}

// Hazard 8: an event is no grant.
TEST_F(QueueWalkTest, AChangeBeforeUsIsLookedAt) {
  (void)walk.listed(queue_of({member("a", 3), own}));
  const auto step = walk.changed();
  EXPECT_EQ(step.next, Next::verify);
  EXPECT_EQ(step.node, member("a", 3));
  EXPECT_EQ(walk.verified(true, 700).next, Next::wait);
  EXPECT_EQ(walk.verified(false, 700).next, Next::grant);
}

TEST_F(QueueWalkTest, WithOthersBeforeThatOneTheListIsAskedForAgain) {
  (void)walk.listed(queue_of({member("a", 3), member("b", 5), own}));
  EXPECT_EQ(walk.changed().next, Next::list);
  EXPECT_EQ(walk.gone().next, Next::list);
  EXPECT_EQ(walk.listed(queue_of({member("a", 3), own})).node, member("a", 3));
}

TEST_F(QueueWalkTest, WhoeverMakesSureLooksAtTheOneBeforeWhoeverElseThereIs) {
  (void)walk.listed(queue_of({member("a", 3), member("b", 5), own}));
  const auto step = walk.check();
  EXPECT_EQ(step.next, Next::watch);
  EXPECT_EQ(step.node, member("b", 5));
}

TEST_F(QueueWalkTest, TheOnlyOneBeforeUsGoneLeavesOurOwnNodeToLookAt) {
  (void)walk.listed(queue_of({member("a", 3), own, member("z", 9)}));
  EXPECT_EQ(walk.gone().next, Next::confirm);
  EXPECT_EQ(walk.verified(false, 700).next, Next::grant);
}

TEST_F(QueueWalkTest, AnOwnNodeThatIsGoneHoldsNothing) {
  EXPECT_EQ(walk.listed(queue_of({member("z", 9)})).next, Next::start_over);
  EXPECT_EQ(walk.listed(queue_of({})).next, Next::start_over);
  (void)walk.listed(queue_of({member("a", 3), own}));
  EXPECT_EQ(walk.verified(false, std::nullopt).next, Next::start_over);
  EXPECT_EQ(walk.verified(false, 701).next, Next::start_over);  // not the one we made
}

// Hazard 11: of one number, the earlier transaction is first.
TEST_F(QueueWalkTest, EqualNumbersAreWeighedByTheirTransactions) {
  const std::string twin = member("twin", 7);
  auto step = walk.listed(queue_of({twin, own}));
  ASSERT_EQ(step.next, Next::weigh);
  EXPECT_EQ(step.node, twin);
  EXPECT_EQ(walk.weighed(701).next, Next::grant);

  (void)walk.listed(queue_of({twin, own}));
  step = walk.weighed(699);
  EXPECT_EQ(step.next, Next::watch);
  EXPECT_EQ(step.node, twin);
  EXPECT_EQ(walk.gone().next, Next::confirm);

  (void)walk.listed(queue_of({twin, own}));
  EXPECT_EQ(walk.weighed(std::nullopt).next, Next::grant);
}

TEST_F(QueueWalkTest, SeveralOfOneNumberAreWeighedOneByOne) {
  const std::string one = member("one", 7);
  const std::string two = member("two", 7);
  auto step = walk.listed(queue_of({one, two, own, member("a", 2)}));
  ASSERT_EQ(step.next, Next::weigh);
  const std::string first = step.node;
  step = walk.weighed(650);
  ASSERT_EQ(step.next, Next::weigh);
  EXPECT_NE(step.node, first);
  const std::string second = step.node;
  step = walk.weighed(660);
  EXPECT_EQ(step.next, Next::watch);
  EXPECT_EQ(step.node, second);
  EXPECT_EQ(walk.gone().next, Next::list);

  step = walk.listed(queue_of({one, two, own}));
  const std::string nearest = step.node;
  step = walk.weighed(660);
  ASSERT_EQ(step.next, Next::weigh);
  step = walk.weighed(650);
  EXPECT_EQ(step.next, Next::watch);
  EXPECT_EQ(step.node, nearest);
}

// Hazard 14.
TEST_F(QueueWalkTest, AForeignLayoutIsRefusedByName) {
  const auto problem = queue_of({own, "0e1cf9d85f6c4a498f0a1c0f0c3f1b2d__lock__0000000001"}).problem;
  ASSERT_TRUE(problem);
  EXPECT_EQ(problem->code, errc::protocol);
  EXPECT_NE(problem->detail.find("kazoo"), std::string::npos);
  EXPECT_NE(problem->detail.find("/dlock/lock"), std::string::npos);
}

TEST_F(QueueWalkTest, WhatIsNoLocksIsIgnoredAndReported) {
  const std::vector<std::string> children{"config", own};
  const Queue queue = queue_of(children);
  EXPECT_EQ(queue.unknown, "config");
  EXPECT_EQ(walk.listed(queue).next, Next::grant);
}

TEST_F(QueueWalkTest, ACounterThatRanOutIsRefusedWithTheRemedy) {
  for (const std::string& poisoned : {std::string("_c_a-lock--2147483648"), member("a", 2147483647)}) {
    const auto problem = queue_of({own, poisoned}).problem;
    ASSERT_TRUE(problem);
    EXPECT_EQ(problem->code, errc::protocol);
    EXPECT_NE(problem->detail.find("delete that node"), std::string::npos);
  }
}

}  // namespace

}  // namespace dlock::zookeeper

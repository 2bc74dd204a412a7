// The way of a waiter to the front of the queue, step by step.
#include "backends/zookeeper/strategies/queue_walk.hpp"

#include <gtest/gtest.h>

#include <cstdio>
#include <string>
#include <vector>

namespace dlock::zookeeper {

namespace {

using Next = QueueWalk::Next;

std::string digits(std::int64_t sequence) {
  char text[16];
  (void)std::snprintf(text, sizeof text, "%010d", static_cast<int>(sequence));
  return text;
}
std::string member(const std::string& who, std::int64_t sequence) {
  return "_c_" + who + "-lock-" + digits(sequence);
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
  EXPECT_EQ(step.next, Next::recheck_predecessor);
  EXPECT_EQ(step.node, member("a", 3));
  EXPECT_EQ(walk.rechecked(true, 700).next, Next::wait);
  EXPECT_EQ(walk.rechecked(false, 700).next, Next::grant);
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
  EXPECT_EQ(walk.gone().next, Next::recheck_own);
  EXPECT_EQ(walk.rechecked(false, 700).next, Next::grant);
}

TEST_F(QueueWalkTest, AnOwnNodeThatIsGoneHoldsNothing) {
  EXPECT_EQ(walk.listed(queue_of({member("z", 9)})).next, Next::start_over);
  EXPECT_EQ(walk.listed(queue_of({})).next, Next::start_over);
  (void)walk.listed(queue_of({member("a", 3), own}));
  EXPECT_EQ(walk.rechecked(false, std::nullopt).next, Next::start_over);
  EXPECT_EQ(walk.rechecked(false, 701).next, Next::start_over);  // not the one we made
}

// Hazard 11: of one number, the earlier transaction is first.
TEST_F(QueueWalkTest, EqualNumbersAreWeighedByTheirTransactions) {
  const std::string twin = member("twin", 7);
  auto step = walk.listed(queue_of({twin, own}));
  ASSERT_EQ(step.next, Next::compare_czxid);
  EXPECT_EQ(step.node, twin);
  EXPECT_EQ(walk.compared(701).next, Next::grant);

  (void)walk.listed(queue_of({twin, own}));
  step = walk.compared(699);
  EXPECT_EQ(step.next, Next::watch);
  EXPECT_EQ(step.node, twin);
  EXPECT_EQ(walk.gone().next, Next::recheck_own);

  (void)walk.listed(queue_of({twin, own}));
  EXPECT_EQ(walk.compared(std::nullopt).next, Next::grant);
}

TEST_F(QueueWalkTest, SeveralOfOneNumberAreWeighedOneByOne) {
  const std::string one = member("one", 7);
  const std::string two = member("two", 7);
  auto step = walk.listed(queue_of({one, two, own, member("a", 2)}));
  ASSERT_EQ(step.next, Next::compare_czxid);
  const std::string first = step.node;
  step = walk.compared(650);
  ASSERT_EQ(step.next, Next::compare_czxid);
  EXPECT_NE(step.node, first);
  const std::string second = step.node;
  step = walk.compared(660);
  EXPECT_EQ(step.next, Next::watch);
  EXPECT_EQ(step.node, second);
  EXPECT_EQ(walk.gone().next, Next::list);

  step = walk.listed(queue_of({one, two, own}));
  const std::string nearest = step.node;
  step = walk.compared(660);
  ASSERT_EQ(step.next, Next::compare_czxid);
  step = walk.compared(650);
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

// --- Read-write locks ------------------------------------------------------------------------------------------------

std::string reader(const std::string& who, int sequence) {
  return "_c_" + who + "-__READ__" + digits(sequence);
}
std::string writer(const std::string& who, int sequence) {
  return "_c_" + who + "-__WRIT__" + digits(sequence);
}
Queue read_write_queue(const std::vector<std::string>& children) {
  return judge_queue(Layout::curator, "/dlock.rw/lock", children, LockKind::read_write);
}
QueueWalk walk_to(const Claim& claim, const std::string& own) {
  QueueWalk walk(claim);
  walk.placed(own, {7, 700});
  return walk;
}

TEST(ReaderWalkTest, WaitsForTheNearestWriterBeforeIt) {
  const std::string own = reader("own", 7);
  QueueWalk walk = walk_to({.kind = LockKind::read_write, .mode = Mode::shared}, own);
  const std::vector<std::string> with_writers{writer("a", 1), reader("b", 2), writer("c", 3), reader("d", 5), own,
                                              writer("e", 8)};
  auto step = walk.listed(read_write_queue(with_writers));
  EXPECT_EQ(step.next, Next::watch);
  EXPECT_EQ(step.node, writer("c", 3));
  EXPECT_EQ(walk.changed().next, Next::list) << "the other one is still to be seen";
  EXPECT_EQ(walk.listed(read_write_queue({reader("b", 2), reader("d", 5), own, writer("e", 8)})).next, Next::grant);
}

TEST(ReaderWalkTest, TheOnlyWriterBeforeItGoneLeavesItsOwnNodeToLookAt) {
  const std::string own = reader("own", 7);
  QueueWalk walk = walk_to({.kind = LockKind::read_write, .mode = Mode::shared}, own);
  (void)walk.listed(read_write_queue({reader("b", 2), writer("c", 3), reader("d", 5), own}));
  EXPECT_EQ(walk.changed().next, Next::recheck_predecessor);
  EXPECT_EQ(walk.rechecked(false, 700).next, Next::grant);
}

// Curator's holder goes on to read by a node with the old number, which is not in the list that the writer has.
TEST(WriterWalkTest, ListsAgainWhoeverWasBeforeIt) {
  const std::string own = writer("own", 7);
  QueueWalk walk = walk_to({.kind = LockKind::read_write}, own);
  auto step = walk.listed(read_write_queue({writer("a", 3), own, reader("b", 9)}));
  EXPECT_EQ(step.next, Next::watch);
  EXPECT_EQ(step.node, writer("a", 3));
  EXPECT_EQ(walk.changed().next, Next::list);
  EXPECT_EQ(walk.gone().next, Next::list);
  step = walk.listed(read_write_queue({reader("a", 3), own, reader("b", 9)}));
  EXPECT_EQ(step.next, Next::watch);
  EXPECT_EQ(step.node, reader("a", 3));
}

TEST(WriterWalkTest, WaitsForTheNearestBeforeIt) {
  const std::string own = writer("own", 7);
  QueueWalk walk = walk_to({.kind = LockKind::read_write}, own);
  EXPECT_EQ(walk.listed(read_write_queue({reader("a", 3), reader("b", 5), own})).node, reader("b", 5));
}

TEST(ReadWriteQueueTest, ItsHoldersAreAWriterOrAllReadersBeforeOne) {
  const auto names = [](const std::vector<std::string>& children) {
    std::vector<std::string> all;
    for (const auto& each : read_write_queue(children).holders()) all.emplace_back(each.node);
    return all;
  };
  using Names = std::vector<std::string>;
  EXPECT_EQ(names({reader("b", 5), reader("a", 3), writer("c", 6), reader("d", 8)}),
            (Names{reader("a", 3), reader("b", 5)}));
  EXPECT_EQ(names({reader("b", 5), writer("a", 3), writer("c", 6)}), Names{writer("a", 3)});
  EXPECT_EQ(names({reader("a", 3), writer("a", 3)}), Names{writer("a", 3)});
  EXPECT_EQ(names({}), Names());
}

// --- Semaphores ------------------------------------------------------------------------------------------------------

std::string permit(const std::string& who, int sequence, int of = 2) {
  return "_c_" + who + "-permit-of-" + std::to_string(of) + "-" + digits(sequence);
}
Queue permit_queue(const std::vector<std::string>& children) {
  return judge_queue(Layout::curator, "/dlock.sem/lock", children, LockKind::semaphore);
}

class PermitWalkTest : public testing::Test {
 protected:
  PermitWalkTest() { walk.placed(own, {7, 700}); }

  QueueWalk walk{{.kind = LockKind::semaphore, .permits = 2}};
  const std::string own = permit("own", 7);
};

TEST_F(PermitWalkTest, AsManyHoldItAsThereArePermits) {
  EXPECT_EQ(walk.listed(permit_queue({own})).next, Next::grant);
  EXPECT_EQ(walk.listed(permit_queue({permit("a", 3), own})).next, Next::grant);
  EXPECT_NE(walk.listed(permit_queue({permit("a", 3), permit("b", 5), own})).next, Next::grant);
  EXPECT_EQ(permit_queue({permit("a", 3), own, permit("b", 5)}).holders().size(), 2U);
}

TEST_F(PermitWalkTest, TheFirstInLineWatchesAllChildren) {
  const std::vector<std::string> children{permit("a", 3), permit("b", 5), own, permit("c", 9)};
  EXPECT_EQ(walk.listed(permit_queue(children)).next, Next::watch_list);
  EXPECT_EQ(walk.listed(permit_queue(children), true).next, Next::wait);
  EXPECT_EQ(walk.changed().next, Next::watch_list);
  EXPECT_EQ(walk.check().next, Next::watch_list);
}

TEST_F(PermitWalkTest, AllOthersWatchTheOneBeforeThem) {
  auto step = walk.listed(permit_queue({permit("a", 3), permit("b", 4), permit("c", 5), own}));
  EXPECT_EQ(step.next, Next::watch);
  EXPECT_EQ(step.node, permit("c", 5));
  EXPECT_EQ(walk.seen("other:2:x").next, Next::wait);
  EXPECT_EQ(walk.seen(QueueWalk::entered("other:2:x")).next, Next::watch_list) << "so we are the first in line";
  EXPECT_EQ(walk.gone().next, Next::watch_list);
  (void)walk.listed(permit_queue({permit("a", 2), permit("b", 3), permit("c", 4), permit("d", 5), own}));
  EXPECT_EQ(walk.gone().next, Next::list) << "one who gave up, most likely";
}

TEST_F(PermitWalkTest, WhoeverEntersSaysSoToThoseBehindIt) {
  EXPECT_EQ(walk.listed(permit_queue({permit("a", 3), own, permit("b", 8)})).next, Next::announce);
}

TEST_F(PermitWalkTest, AnotherNumberOfPermitsBeforeItIsRefused) {
  const auto step = walk.listed(permit_queue({permit("a", 3, 3), own}));
  EXPECT_EQ(step.next, Next::refuse);
  EXPECT_EQ(step.permits, 3U);
  EXPECT_EQ(walk.listed(permit_queue({own, permit("a", 8, 3)})).next, Next::announce) << "those who came later are";
  EXPECT_EQ(walk.behind(permit_queue({permit("a", 3, 3)})).next, Next::refuse);
  EXPECT_EQ(walk.behind(permit_queue({permit("a", 3)})).next, Next::grant);
  EXPECT_EQ(walk.behind(permit_queue({permit("a", 3), permit("b", 4)})).next, Next::wait);
}

TEST_F(PermitWalkTest, OneWhoWillBeRefusedRefusesNobody) {
  const std::vector<std::string> children{permit("b", 5, 3), permit("a", 3), own};
  auto step = walk.listed(permit_queue(children));
  EXPECT_EQ(step.next, Next::watch);
  EXPECT_EQ(step.node, permit("b", 5, 3)) << "it may yet be the first";
  EXPECT_EQ(walk.check().node, permit("b", 5, 3));
  EXPECT_EQ(walk.gone().next, Next::watch_list);
  EXPECT_EQ(walk.listed(permit_queue(children), true).next, Next::wait);
  EXPECT_EQ(walk.behind(permit_queue({permit("b", 5, 3), permit("a", 3)})).next, Next::wait);
  EXPECT_EQ(walk.listed(permit_queue({permit("b", 5, 3), own})).next, Next::refuse);
  EXPECT_EQ(walk.listed(permit_queue({permit("a", 3), own})).next, Next::grant);
}

}  // namespace

}  // namespace dlock::zookeeper

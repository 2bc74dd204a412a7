// What happened in a history, in numbers.
#include "tests/unit/torture/checker/history_builder.hpp"

namespace dlock::torture {
namespace {

Counts counts(const History& h) {
  return check(h.events(), {}).counts;
}

TEST(Counts, OfNothingAreZero) {
  const Counts none = counts(History());
  EXPECT_EQ(none.acquires, 0U);
  EXPECT_EQ(none.longest_wait, 0ns);
  EXPECT_TRUE(none.denied.empty());
  EXPECT_TRUE(none.faults.empty());
}

TEST(Counts, Acquires) {
  History h;
  h.process(1).asks("a").after(3s).is_granted(1).releases().has_released();
  h.process(1).asks("a", 5s).after(5s).is_denied("timed out");
  h.process(2).asks("b", 0s).is_denied("busy").asks("b", 0s).is_denied("busy").asks("b");
  const Counts seen = counts(h);
  EXPECT_EQ(seen.acquires, 5U);
  EXPECT_EQ(seen.grants, 1U);
  EXPECT_EQ(seen.longest_wait, 3s);
  EXPECT_EQ(seen.denied, (std::map<std::string, std::size_t>{{"busy", 2}, {"timed out", 1}}));
}

TEST(Counts, LossesWritesAndFaults) {
  History h;
  h.strikes("kill").strikes("kill").strikes("partition").heals("partition");
  h.process(1).asks("a").is_granted(1).is_told_of_loss();
  h.serves("a", 2, true).serves("a", 1, false).serves("a", 2, true);
  const Counts seen = counts(h);
  EXPECT_EQ(seen.losses, 1U);
  EXPECT_EQ(seen.writes, 2U);
  EXPECT_EQ(seen.stale_writes, 1U);
  EXPECT_EQ(seen.faults, (std::map<std::string, std::size_t>{{"kill", 2}, {"partition", 1}}));
}

TEST(Counts, HandOversAreToThoseWhoWaited) {
  History h;
  h.process(1).asks("a").is_granted(1);
  h.process(2).asks("a");
  h.process(1).releases().has_released();
  h.process(2).is_granted(2).releases().has_released();
  h.process(1).asks("a").is_granted(3);
  EXPECT_EQ(counts(h).hand_overs, 1U);
  EXPECT_EQ(counts(h).takeovers, 0U);
}

TEST(Counts, TakeoversAreFromThoseWhoHadNotBegunToGiveBack) {
  History h;
  h.process(1).asks("a").is_granted(1);
  h.kills(1);
  h.process(2).asks("a").is_granted(2);
  h.process(3).asks("a").is_granted(3);
  h.process(2).releases().has_released(false);
  h.process(3).releases().could_not_release();
  h.process(4).asks("a").is_granted(4).releases().has_released();
  h.process(5).asks("a").is_granted(5);
  EXPECT_EQ(counts(h).takeovers, 2U);
  EXPECT_EQ(counts(h).hand_overs, 0U);
}

TEST(Counts, StallsAreTimesOfAFreeLockThatSomebodyWaitsFor) {
  History h;
  h.process(1).asks("a").after(3s).is_granted(1);
  h.heals();
  h.process(2).asks("a");
  h.process(1).releases().has_released();
  h.process(2).after(2s).is_granted(2).releases().has_released();
  h.process(3).after(9s).asks("a").is_granted(3);
  EXPECT_EQ(counts(h).longest_stall, 3s);
  EXPECT_EQ(counts(h).longest_stall_after, 2s);
}

TEST(Counts, AStallLastsToTheEndWhereNobodyGetsTheLock) {
  History h;
  h.process(1).asks("a");
  h.process(2).after(3s).asks("b");
  EXPECT_EQ(counts(h).longest_stall, 3s);
  EXPECT_EQ(counts(h).longest_stall_after, 0s);
}

}  // namespace
}  // namespace dlock::torture

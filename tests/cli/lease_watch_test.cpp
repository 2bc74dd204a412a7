#include "cli/lease_watch.hpp"

#include <gtest/gtest.h>

#include <chrono>

namespace dlock::cli {
namespace {

using namespace std::chrono_literals;
using Action = LeaseWatch::Action;

constexpr TimePoint start = TimePoint(24h);
constexpr TimePoint never = TimePoint::max();

TEST(LeaseWatch, LeavesACommandAloneWhoseLeaseDoesNotRunOut) {
  LeaseWatch watch(5s, start, never);
  const auto step = watch.step(start + 1000h, never, false);
  EXPECT_EQ(step.action, Action::none);
  EXPECT_EQ(step.wake, never);
  EXPECT_EQ(step.deadline, never);
}

TEST(LeaseWatch, LooksAgainWhenOnlyTheNoticeIsLeft) {
  LeaseWatch watch(5s, start, start + 30s);
  const auto step = watch.step(start, start + 30s, false);
  EXPECT_EQ(step.action, Action::none);
  EXPECT_EQ(step.wake, start + 25s);
  EXPECT_EQ(step.deadline, start + 30s);
}

TEST(LeaseWatch, ARenewalMovesTheNextLook) {
  LeaseWatch watch(5s, start, start + 30s);
  (void)watch.step(start, start + 30s, false);
  const auto step = watch.step(start + 25s, start + 50s, false);
  EXPECT_EQ(step.action, Action::none);
  EXPECT_EQ(step.wake, start + 45s);
  EXPECT_EQ(step.deadline, start + 50s);
}

TEST(LeaseWatch, GivesNoticeBeforeTheLeaseRunsOut) {
  LeaseWatch watch(5s, start, start + 30s);
  const auto step = watch.step(start + 25s, start + 30s, false);
  EXPECT_EQ(step.action, Action::terminate);
  EXPECT_EQ(step.wake, start + 30s);
  EXPECT_EQ(step.deadline, start + 30s);
}

TEST(LeaseWatch, KillsAtTheEndOfTheLeaseAndNotLater) {
  LeaseWatch watch(5s, start, start + 30s);
  (void)watch.step(start + 26s, start + 30s, false);
  EXPECT_EQ(watch.step(start + 30s - 1ns, start + 30s, false).action, Action::none);
  EXPECT_EQ(watch.step(start + 30s, start + 30s, true).action, Action::kill);
}

TEST(LeaseWatch, KillsOnlyOnce) {
  LeaseWatch watch(5s, start, start + 30s);
  EXPECT_EQ(watch.step(start + 31s, start + 30s, true).action, Action::kill);
  const auto step = watch.step(start + 32s, start + 30s, true);
  EXPECT_EQ(step.action, Action::none);
  EXPECT_EQ(step.wake, never);
  EXPECT_LE(step.deadline, start + 31s);
}

TEST(LeaseWatch, UsesAtMostAThirdOfTheLeaseAsNotice) {
  LeaseWatch watch(10s, start, start + 6s);
  EXPECT_EQ(watch.step(start + 4s - 1ns, start + 6s, false).action, Action::none);
  EXPECT_EQ(watch.step(start + 4s, start + 6s, false).action, Action::terminate);
}

TEST(LeaseWatch, ANoticeIsNotTakenBackByALateRenewal) {
  LeaseWatch watch(5s, start, start + 30s);
  (void)watch.step(start + 25s, start + 30s, false);
  const auto step = watch.step(start + 26s, start + 56s, false);
  EXPECT_EQ(step.action, Action::none);
  EXPECT_EQ(step.wake, start + 30s);
  EXPECT_EQ(watch.step(start + 30s, start + 56s, false).action, Action::kill);
}

TEST(LeaseWatch, ALockTakenAwayIsATerminationAtOnceAndAKillAfterTheGrace) {
  LeaseWatch watch(5s, start, never);
  const auto step = watch.step(start + 7s, never, true);
  EXPECT_EQ(step.action, Action::terminate);
  EXPECT_EQ(step.wake, start + 12s);
  EXPECT_EQ(step.deadline, start + 12s);
  EXPECT_EQ(watch.step(start + 12s - 1ns, never, true).action, Action::none);
  EXPECT_EQ(watch.step(start + 12s, never, true).action, Action::kill);
}

TEST(LeaseWatch, TheGraceOfALockTakenAwayEndsWithItsLease) {
  LeaseWatch watch(5s, start, start + 30s);
  const auto step = watch.step(start + 20s, start + 22s, true);
  EXPECT_EQ(step.action, Action::terminate);
  EXPECT_EQ(step.wake, start + 22s);
}

TEST(LeaseWatch, KillsAtOnceWhenTheLeaseHadRunOutBeforeAnybodyLooked) {
  LeaseWatch watch(5s, start, start + 30s);
  EXPECT_EQ(watch.step(start + 300s, start + 30s, false).action, Action::kill);
}

TEST(LeaseWatch, KillsAtOnceWithoutAGrace) {
  LeaseWatch watch(0s, start, never);
  EXPECT_EQ(watch.step(start, never, true).action, Action::kill);
}

TEST(LeaseWatch, AnEndlessGraceLeavesTheLeaseAsTheLimit) {
  LeaseWatch unlimited(forever.value(), start, never);
  EXPECT_EQ(unlimited.step(start, never, true).wake, never);
  LeaseWatch limited(forever.value(), start, start + 30s);
  EXPECT_EQ(limited.step(start, start + 30s, true).wake, start + 30s);
}

TEST(LeaseWatch, ANegativeGraceIsNone) {
  LeaseWatch watch(-1s, start, start + 30s);
  EXPECT_EQ(watch.step(start, start + 30s, false).wake, start + 30s);
}

}  // namespace
}  // namespace dlock::cli

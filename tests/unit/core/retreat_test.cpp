#include "core/retreat.hpp"

#include <gtest/gtest.h>

namespace dlock::detail {

namespace {

using namespace std::chrono_literals;

class RetreatTest : public testing::Test {
 protected:
  // Holds one lock for so long, and finds another one busy.
  void hold_in_vain(Retreat::Duration how_long) {
    retreat.entered(now);
    now += how_long;
    retreat.tried_in_vain(&busy, now);
    retreat.left();
  }

  Retreat retreat;
  const int busy = 0;
  Retreat::TimePoint now;
};

TEST_F(RetreatTest, NothingIsDueToWhoeverHoldsNothing) {
  EXPECT_EQ(retreat.take(&busy), 0ms);
  retreat.tried_in_vain(&busy, now);
  EXPECT_EQ(retreat.take(&busy), 0ms);
}

TEST_F(RetreatTest, NothingIsDueWithoutATryInVain) {
  retreat.entered(now);
  retreat.entered(now + 5ms);
  retreat.left();
  retreat.left();
  EXPECT_EQ(retreat.take(&busy), 0ms);
}

TEST_F(RetreatTest, APauseIsAsLongAsWhatWasHeldInVainAndDueOnce) {
  hold_in_vain(3ms);
  EXPECT_EQ(retreat.take(&busy), 3ms);
  EXPECT_EQ(retreat.take(&busy), 0ms);
}

TEST_F(RetreatTest, APauseIsDueOnlyBeforeTheLockThatWasBusy) {
  hold_in_vain(3ms);
  const int another = 0;
  EXPECT_EQ(retreat.take(&another), 0ms);
  EXPECT_EQ(retreat.take(&busy), 3ms);
}

TEST_F(RetreatTest, WhatWasLongAgoIsForgotten) {
  hold_in_vain(3ms);
  now += 1h;
  hold_in_vain(3ms);
  EXPECT_EQ(retreat.take(&busy), 3ms);
}

TEST_F(RetreatTest, NobodyPausesWhileHolding) {
  retreat.entered(now);
  retreat.tried_in_vain(&busy, now + 3ms);
  EXPECT_EQ(retreat.take(&busy), 0ms);
  retreat.left();
  EXPECT_EQ(retreat.take(&busy), 3ms);
}

TEST_F(RetreatTest, PausesDoubleUpToABoundAndBeginAnewAfterASuccess) {
  hold_in_vain(3ms);
  hold_in_vain(3ms);
  EXPECT_EQ(retreat.take(&busy), 6ms);
  for (int i = 0; i < 20; ++i) hold_in_vain(3ms);
  EXPECT_EQ(retreat.take(&busy), Retreat::longest);
  retreat.entered(now);
  retreat.entered(now);  // both at once
  retreat.left();
  retreat.left();
  hold_in_vain(3ms);
  EXPECT_EQ(retreat.take(&busy), 3ms);
}

TEST_F(RetreatTest, EachThreadHasItsOwn) {
  Retreat& mine = Retreat::of_this_thread();
  std::jthread([&] { EXPECT_NE(&Retreat::of_this_thread(), &mine); }).join();
  EXPECT_EQ(&Retreat::of_this_thread(), &mine);
}

}  // namespace

}  // namespace dlock::detail

#include "core/api/livelock_backoff.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

namespace dlock::detail {

namespace {

using namespace std::chrono_literals;

class LivelockBackoffTest : public testing::Test {
 protected:
  // Holds one lock for so long, and finds another one busy.
  void hold_in_vain(LivelockBackoff::Duration how_long) {
    backoff.entered(now);
    now += how_long;
    backoff.tried_in_vain(&busy, now);
    backoff.left();
  }

  LivelockBackoff backoff;
  const int busy = 0;
  LivelockBackoff::TimePoint now;
};

TEST_F(LivelockBackoffTest, NothingIsDue_WithoutALockThatIsHeldInVain) {
  EXPECT_EQ(backoff.take(&busy), 0ms);
  backoff.tried_in_vain(&busy, now);
  EXPECT_EQ(backoff.take(&busy), 0ms) << "nothing was held";
  backoff.entered(now);
  backoff.entered(now + 5ms);
  backoff.left();
  backoff.left();
  EXPECT_EQ(backoff.take(&busy), 0ms) << "nothing was busy";
}

TEST_F(LivelockBackoffTest, APauseIsAsLongAsWhatWasHeldInVain_DueOnceBeforeTheBusyLockWhenNothingIsHeld) {
  const int another = 0;
  for (int i = 0; i < 2; ++i) {
    backoff.entered(now);
    now += 3ms;
    backoff.tried_in_vain(&busy, now);
    EXPECT_EQ(backoff.take(&busy), 0ms) << "held";
    backoff.left();
    EXPECT_EQ(backoff.take(&another), 0ms);
    EXPECT_EQ(backoff.take(&busy), 3ms);
    EXPECT_EQ(backoff.take(&busy), 0ms);
    hold_in_vain(3ms);
    now += 1h;  // what was long ago is forgotten
  }
}

TEST_F(LivelockBackoffTest, PausesDoubleUpToABoundAndBeginAnewAfterASuccess) {
  hold_in_vain(3ms);
  hold_in_vain(3ms);
  EXPECT_EQ(backoff.take(&busy), 6ms);
  for (int i = 0; i < 20; ++i) hold_in_vain(3ms);
  EXPECT_EQ(backoff.take(&busy), LivelockBackoff::longest);
  backoff.entered(now);
  backoff.entered(now);  // both at once
  backoff.left();
  backoff.left();
  hold_in_vain(3ms);
  EXPECT_EQ(backoff.take(&busy), 3ms);
}

TEST_F(LivelockBackoffTest, EachThreadHasItsOwn) {
  LivelockBackoff& mine = LivelockBackoff::of_this_thread();
  std::jthread([&] { EXPECT_NE(&LivelockBackoff::of_this_thread(), &mine); }).join();
  EXPECT_EQ(&LivelockBackoff::of_this_thread(), &mine);
}

}  // namespace

}  // namespace dlock::detail

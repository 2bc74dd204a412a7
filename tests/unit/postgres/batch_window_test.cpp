#include "backends/postgres/rows/batch_window.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>

#include <dlock/clock.hpp>

namespace dlock::postgres {

namespace {

using namespace std::chrono_literals;

class PostgresBatchWindow : public testing::Test {
 protected:
  // A round trip has brought so many answers; within the window so many ask.
  void round(std::size_t answered, std::size_t back, std::chrono::nanoseconds trip = 400us) {
    now += trip;
    window.answered(answered, now - trip, now);
    for (std::size_t i = 0; i < back; ++i) window.asked(now);
  }
  [[nodiscard]] bool waits() const { return window.waits_until(now).has_value(); }

  TimePoint now = TimePoint() + 1h;
  BatchWindow window;
};

TEST_F(PostgresBatchWindow, NobodyIsExpectedAtFirstAndALoneCallerNeverWaits) {
  EXPECT_FALSE(waits());
  window.asked(now);
  EXPECT_FALSE(waits());
  for (int i = 0; i < 10; ++i) {
    round(1, 1);
    EXPECT_FALSE(waits());
  }
}

TEST_F(PostgresBatchWindow, AsManyAreWaitedForAsCameBackOfLate) {
  for (int i = 0; i < 5; ++i) round(4, 4);
  round(4, 0);
  for (int i = 0; i < 4; ++i) {
    EXPECT_TRUE(waits()) << i;
    window.asked(now);
  }
  EXPECT_FALSE(waits());
  for (int i = 0; i < 5; ++i) round(4, 1);
  EXPECT_FALSE(waits()) << "the others stay away";
  for (int i = 0; i < 4; ++i) round(4, 0);
  EXPECT_FALSE(waits());
}

TEST_F(PostgresBatchWindow, TheWaitIsHalfARoundTripAndAMillisecondAtMost) {
  for (int i = 0; i < 5; ++i) round(2, 2);
  round(2, 1);
  EXPECT_EQ(window.waits_until(now), now + 200us);
  now += 200us;
  EXPECT_FALSE(waits());
  round(2, 2, 50ms);
  round(2, 1, 50ms);
  EXPECT_EQ(window.waits_until(now), now + 1ms);
  for (int i = 0; i < 5; ++i) {
    round(2, 0);
    now += 300us;
    window.asked(now);
    window.asked(now);
  }
  round(2, 1);
  EXPECT_FALSE(waits()) << "who comes too late does not count";
}

}  // namespace

}  // namespace dlock::postgres

#include "tests/simulation/clocks.hpp"

#include <gtest/gtest.h>

namespace dlock::simulation {
namespace {

using namespace std::chrono_literals;

constexpr std::int64_t slow = 990'500;
constexpr std::int64_t fast = 1'009'500;

TEST(ProcessClock, RunsAtItsRate) {
  SimulatedTime time;
  const ProcessClock clock(time, slow, 5h);
  const TimePoint first = clock.now();
  EXPECT_EQ(first, SimulatedTime::start + 5h);
  time.now += 10s;
  EXPECT_EQ(clock.now(), first + 9905ms);
}

TEST(ProcessClock, TellsWhenItWillShowATime) {
  SimulatedTime time;
  for (const std::int64_t rate : {slow, fast, ProcessClock::true_rate}) {
    const ProcessClock clock(time, rate, 7ns);
    for (const auto after : {0ns, 1ns, 2ns, 999ns, 1000ns, 1001ns, 1'000'000'007ns}) {
      const TimePoint shown = SimulatedTime::start + 7ns + after;
      EXPECT_GE(clock.at(clock.when(shown)), shown);
      if (after > 0ns) {
        EXPECT_LT(clock.at(clock.when(shown) - 1ns), shown);
      }
      EXPECT_GE(clock.when(clock.not_before(SimulatedTime::start + after)), SimulatedTime::start + after);
    }
  }
}

TEST(ProcessClock, NeverShowsWhatIsFarAway) {
  SimulatedTime time;
  const ProcessClock clock(time, fast, 1h);
  EXPECT_EQ(clock.when(TimePoint::max()), TimePoint::max());
  EXPECT_EQ(clock.at(TimePoint::max()), TimePoint::max());
  EXPECT_EQ(clock.not_before(TimePoint::max()), TimePoint::max());
}

TEST(ProcessClock, ShowsWhatIsLongPastAtOnce) {
  SimulatedTime time;
  const ProcessClock clock(time, fast, 1h);
  EXPECT_LE(clock.not_before(TimePoint()), clock.now());
  EXPECT_EQ(clock.when(clock.not_before(TimePoint())), SimulatedTime::start);
}

TEST(ProcessClock, KeepsItsTimeWhenTheWallClockIsStepped) {
  SimulatedTime time;
  ProcessClock clock(time, fast, 1h);
  const TimePoint before = clock.now();
  const auto wall_before = clock.wall_now();
  clock.step_wall(-2h);
  EXPECT_EQ(clock.now(), before);
  EXPECT_EQ(clock.wall_now(), wall_before - 2h);
}

}  // namespace
}  // namespace dlock::simulation

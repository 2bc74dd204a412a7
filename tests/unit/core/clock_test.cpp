#include <dlock/clock.hpp>

#include <gtest/gtest.h>
#include <time.h>

#include <chrono>
#include <cstdint>
#include <limits>
#include <memory>
#include <thread>
#include <vector>

namespace dlock {
namespace {

using namespace std::chrono_literals;

struct Listener final : ClockListener {
  explicit Listener(const ManualClock* c = nullptr) : clock(c) {}
  std::uint64_t clock_moved() noexcept override {
    if (calls++ < busy_for) ++ran;
    if (clock != nullptr) seen = clock->now();
    return ran;
  }
  const ManualClock* clock;
  int calls = 0;
  int busy_for = 0;
  std::uint64_t ran = 0;
  TimePoint seen;
};

TEST(LeaseClock, IsBoottimeWhichCountsSuspend) {
  const auto read = [] {
    timespec t{};
    clock_gettime(CLOCK_BOOTTIME, &t);
    return TimePoint(std::chrono::seconds(t.tv_sec) + std::chrono::nanoseconds(t.tv_nsec));
  };
  const TimePoint before = read();
  const TimePoint now = LeaseClock::now();
  const TimePoint through_interface = boottime_clock()->now();
  const TimePoint after = read();
  EXPECT_LE(before, now);
  EXPECT_LE(now, through_interface);
  EXPECT_LE(through_interface, after);
  EXPECT_TRUE(boottime_clock()->runs_by_itself());
}

TEST(ManualClock, StandsStillUntilMoved) {
  ManualClock clock;
  const TimePoint start = clock.now();
  EXPECT_EQ(start, TimePoint(24h));
  EXPECT_EQ(clock.now(), start);
  clock.advance(5s);
  EXPECT_EQ(clock.now(), start + 5s);
  EXPECT_FALSE(clock.runs_by_itself());
}

TEST(ManualClock, WallTimeMovesAlongAndCanBeSteppedAlone) {
  ManualClock clock;
  const auto wall = clock.wall_now();
  const TimePoint now = clock.now();
  clock.advance(5s);
  EXPECT_EQ(clock.wall_now(), wall + 5s);
  clock.step_wall(-1h);
  EXPECT_EQ(clock.wall_now(), wall + 5s - 1h);
  EXPECT_EQ(clock.now(), now + 5s);
}

TEST(ManualClock, NeverGoesBack) {
  ManualClock clock;
  const TimePoint start = clock.now();
  clock.advance(-5s);
  clock.advance(0s);
  EXPECT_EQ(clock.now(), start);
}

TEST(ManualClock, SaturatesAtTheEndOfTime) {
  ManualClock clock;
  clock.advance(std::chrono::nanoseconds::max());
  EXPECT_EQ(clock.now(), TimePoint::max());
  clock.advance(std::chrono::nanoseconds::max());
  EXPECT_EQ(clock.now(), TimePoint::max());
  clock.step_wall(std::chrono::nanoseconds::min());
  clock.step_wall(std::chrono::nanoseconds::min());
  clock.step_wall(std::chrono::nanoseconds::min());
}

TEST(ManualClock, TellsItsListenersAfterTheMove) {
  ManualClock clock;
  const auto listener = std::make_shared<Listener>(&clock);
  clock.add_listener(listener);
  clock.advance(5s);
  EXPECT_EQ(listener->calls, 1);
  EXPECT_EQ(listener->seen, TimePoint(24h) + 5s);
  clock.advance(-1s);
  EXPECT_EQ(listener->calls, 1);
}

TEST(ManualClock, ReturnsOnceNoListenerHasRunAnythingForAWholeRound) {
  ManualClock clock;
  const auto idle = std::make_shared<Listener>();
  const auto busy = std::make_shared<Listener>();
  busy->busy_for = 3;
  clock.add_listener(idle);
  clock.add_listener(busy);
  clock.advance(1s);
  EXPECT_EQ(busy->calls, 4);
  EXPECT_EQ(idle->calls, 4) << "the busy one may have given it work";
}

TEST(ManualClock, ReturnsThoughAListenerAlwaysRunsMore) {
  ManualClock clock;
  const auto busy = std::make_shared<Listener>();
  busy->busy_for = std::numeric_limits<int>::max();
  clock.add_listener(busy);
  clock.advance(1s);
  EXPECT_GT(busy->calls, 1);
}

TEST(ManualClock, ForgetsListenersThatAreGone) {
  ManualClock clock;
  auto gone = std::make_shared<Listener>();
  const auto stays = std::make_shared<Listener>();
  clock.add_listener(gone);
  clock.add_listener(stays);
  gone.reset();
  clock.advance(1s);
  EXPECT_EQ(stays->calls, 1);
}

TEST(ManualClock, MayBeMovedByManyThreads) {
  ManualClock clock;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&clock] {
      for (int n = 0; n < 1000; ++n) {
        clock.advance(1ns);
        (void)clock.now();
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(clock.now(), TimePoint(24h) + 4000ns);
}

}  // namespace
}  // namespace dlock

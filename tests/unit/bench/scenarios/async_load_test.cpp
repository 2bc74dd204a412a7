#include "bench/scenarios/async_load.hpp"

#include <gtest/gtest.h>

#include "bench/scenarios/pairs.hpp"
#include "tests/unit/bench/scenarios/test_target.hpp"

namespace dlock::bench {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::nanoseconds;

TEST(AsyncLoad, KeepsAllOfThemUnderWay) {
  const TestTarget target;
  AsyncLoad load(target, 50);
  load.start();
  load.warm_up(milliseconds(1), {});
  const auto before = load.pairs();
  const Window window = load.measure(nanoseconds(1), {});
  EXPECT_TRUE(window.complete);
  EXPECT_GT(window.samples.count(), 0U);
  EXPECT_GE(load.pairs(), before + window.calls());
  EXPECT_EQ(target.clients(), std::vector<std::size_t>{50}) << "one client does it all";
}

TEST(AsyncLoad, AStopEndsAWindow) {
  const TestTarget target;
  AsyncLoad load(target, 5);
  load.start();
  std::stop_source stop;
  stop.request_stop();
  load.warm_up(hours(1), stop.get_token());
  EXPECT_FALSE(load.measure(hours(1), stop.get_token()).complete);
}

TEST(AsyncLoad, LeavesNothingLocked) {
  const TestTarget target("memory://load");
  const Client other = connect(target.url(1));
  {
    AsyncLoad load(target, 20);
    load.start();
    (void)load.measure(milliseconds(1), {});
  }
  for (int i = 0; i < 20; ++i) {
    EXPECT_TRUE(other.make_lock(lock_name("outstanding/" + std::to_string(i))).try_acquire()) << i;
  }
}

TEST(AsyncLoad, ALockThatIsTakenAwayIsAnError) {
  const TestTarget target("memory://broken");
  const Client other = connect(target.url(1));
  AsyncLoad load(target, 1);
  load.start();
  EXPECT_THROW(
      {
        for (;;) {
          (void)other.break_lock(lock_name("outstanding/0"));
          (void)load.measure(nanoseconds(1), {});
        }
      },
      std::runtime_error);
}

}  // namespace
}  // namespace dlock::bench

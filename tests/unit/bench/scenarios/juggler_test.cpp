#include "bench/scenarios/juggler.hpp"

#include <gtest/gtest.h>

#include "bench/scenarios/pairs.hpp"
#include "tests/unit/bench/scenarios/test_target.hpp"

namespace dlock::bench {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::nanoseconds;

TEST(Juggler, KeepsAllOfThemUnderWay) {
  const TestTarget target;
  Juggler juggler(target, 50);
  juggler.start();
  juggler.warm_up(milliseconds(1), {});
  const auto before = juggler.pairs();
  const Window window = juggler.measure(nanoseconds(1), {});
  EXPECT_TRUE(window.complete);
  EXPECT_GT(window.samples.count(), 0U);
  EXPECT_GE(juggler.pairs(), before + window.calls());
  EXPECT_EQ(target.clients(), std::vector<std::size_t>{50}) << "one client does it all";
}

TEST(Juggler, AStopEndsAWindow) {
  const TestTarget target;
  Juggler juggler(target, 5);
  juggler.start();
  std::stop_source stop;
  stop.request_stop();
  juggler.warm_up(hours(1), stop.get_token());
  EXPECT_FALSE(juggler.measure(hours(1), stop.get_token()).complete);
}

TEST(Juggler, LeavesNothingLocked) {
  const TestTarget target("memory://juggler");
  const Client other = connect(target.url(1));
  {
    Juggler juggler(target, 20);
    juggler.start();
    (void)juggler.measure(milliseconds(1), {});
  }
  for (int i = 0; i < 20; ++i) {
    EXPECT_TRUE(other.lock(lock_name("outstanding/" + std::to_string(i))).try_acquire()) << i;
  }
}

TEST(Juggler, ALockThatIsTakenAwayIsAnError) {
  const TestTarget target("memory://broken");
  const Client other = connect(target.url(1));
  Juggler juggler(target, 1);
  juggler.start();
  EXPECT_THROW(
      {
        for (;;) {
          (void)other.break_lock(lock_name("outstanding/0"));
          (void)juggler.measure(nanoseconds(1), {});
        }
      },
      std::runtime_error);
}

}  // namespace
}  // namespace dlock::bench

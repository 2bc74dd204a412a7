#include "bench/scenarios/async_load.hpp"

#include <gtest/gtest.h>

#include <stdexcept>

#include "bench/scenarios/work.hpp"
#include "tests/unit/bench/scenarios/test_target.hpp"

namespace dlock::bench {
namespace {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;

TEST(AsyncLoad, OneClientKeepsAllOfThemUnderWay) {
  const TestTarget target;
  AsyncLoad load(target, 50);
  load.start();
  while (load.calls() < 50) (void)load.measure(milliseconds(1), {});
  const auto before = load.calls();
  const Window window = load.measure(milliseconds(20), {});
  EXPECT_TRUE(window.complete);
  EXPECT_GT(window.samples.count(), 50U);
  // A sample is of a call whose release is in the window; its acquire may be before.
  EXPECT_NEAR(static_cast<double>(window.calls()), static_cast<double>(window.samples.count()), 26);
  EXPECT_GE(load.calls(), before + window.calls());
  EXPECT_EQ(target.clients(), std::vector<std::size_t>{50});
}

TEST(AsyncLoad, LeavesNothingLocked) {
  const TestTarget target("memory://load");
  const Client other = connect(target.url(1));
  {
    AsyncLoad load(target, 20);
    load.start();
    (void)load.measure(milliseconds(1), {});
  }
  for (std::size_t i = 0; i < 20; ++i) EXPECT_TRUE(other.make_lock(lock_name("outstanding", i)).try_acquire()) << i;
}

TEST(AsyncLoad, ALockThatIsTakenAwayIsAnError) {
  const TestTarget target("memory://broken");
  const Client other = connect(target.url(1));
  AsyncLoad load(target, 1);
  load.start();
  EXPECT_THROW(
      {
        for (;;) {
          (void)other.break_lock(lock_name("outstanding"));
          (void)load.measure(nanoseconds(1), {});
        }
      },
      std::runtime_error);
}

}  // namespace
}  // namespace dlock::bench

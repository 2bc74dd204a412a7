#include "torture/rig/pause.hpp"

#include <gtest/gtest.h>

namespace dlock::rig {
namespace {

TEST(Pause, EndsByItself) {
  EXPECT_TRUE(pause(std::chrono::nanoseconds(1), {}));
}

TEST(Pause, IsEndedByAStop) {
  std::stop_source stop;
  stop.request_stop();
  EXPECT_FALSE(pause(std::chrono::hours(1), stop.get_token()));
}

}  // namespace
}  // namespace dlock::rig

// The wall clock of a child process goes its own ways; its other clocks do not.
#include "tests/torture/breakage/wall_clock.hpp"

#include <gtest/gtest.h>
#include <time.h>

#include <array>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <system_error>

#include "tests/torture/client/commanded_client.hpp"
#include "torture/rig/scratch_directory.hpp"

namespace dlock::torture {
namespace {

using namespace std::chrono_literals;
using std::chrono::milliseconds;

struct Clocks {
  milliseconds wall;
  milliseconds monotonic;
  milliseconds boottime;
  milliseconds lease;
};

Clocks clocks_of(CommandedClient& client) {
  std::istringstream words(client.tell("clocks"));
  std::array<std::int64_t, 4> read{};
  for (auto& value : read) words >> value;
  EXPECT_TRUE(words) << client.said();
  return {milliseconds(read[0]), milliseconds(read[1]), milliseconds(read[2]), milliseconds(read[3])};
}

milliseconds now(clockid_t clock) {
  timespec t{};
  EXPECT_EQ(::clock_gettime(clock, &t), 0);
  return std::chrono::floor<milliseconds>(std::chrono::seconds(t.tv_sec) + std::chrono::nanoseconds(t.tv_nsec));
}

class WallClockTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string why_not;
    if (!WallClock::available(why_not)) GTEST_SKIP() << why_not;
    clock_ = std::make_unique<WallClock>(directory_.path());
  }

  // All clocks of the child but the wall's lie between two looks at ours; the wall's does so, less the offset.
  void expect_only_the_wall_clock_to_be_off(CommandedClient& client) const {
    const milliseconds wall = now(CLOCK_REALTIME);
    const milliseconds monotonic = now(CLOCK_MONOTONIC);
    const milliseconds boottime = now(CLOCK_BOOTTIME);
    const Clocks child = clocks_of(client);
    const auto between = [](milliseconds value, milliseconds from, milliseconds to) {
      return from <= value && value <= to;
    };
    EXPECT_TRUE(between(child.monotonic, monotonic, now(CLOCK_MONOTONIC))) << child.monotonic.count();
    EXPECT_TRUE(between(child.boottime, boottime, now(CLOCK_BOOTTIME))) << child.boottime.count();
    EXPECT_TRUE(between(child.lease, boottime, now(CLOCK_BOOTTIME))) << child.lease.count();
    EXPECT_TRUE(between(child.wall - clock_->offset(), wall - 1s, now(CLOCK_REALTIME) + 1s)) << child.wall.count();
  }

  rig::ScratchDirectory directory_;
  std::unique_ptr<WallClock> clock_;
};

TEST_F(WallClockTest, IsSteppedBothWaysWhileTheOthersGoOn) {
  CommandedClient client("file://" + directory_.path() + "/locks", clock_->variables());
  expect_only_the_wall_clock_to_be_off(client);
  for (const auto step : {3h, -9h, -24h, 48h, 0h}) {
    clock_->step(step);
    expect_only_the_wall_clock_to_be_off(client);
  }
  EXPECT_EQ(clock_->offset(), 18h);
}

// A wait that ends by its deadline is one that a timer ended.
TEST_F(WallClockTest, LeavesTimersAlone) {
  const std::string url = "file://" + directory_.path() + "/locks";
  CommandedClient holder(url);
  ASSERT_TRUE(holder.tell("acquire a 0").starts_with("granted a ")) << holder.said();
  CommandedClient waiter(url, clock_->variables());
  for (const auto step : {0h, 5h, -10h}) {
    clock_->step(step);
    expect_only_the_wall_clock_to_be_off(waiter);  // it knows of the step now
    const auto begin = std::chrono::steady_clock::now();
    const std::string answer = waiter.tell("acquire a 100");
    EXPECT_TRUE(answer.starts_with("error timed out")) << answer;
    EXPECT_GE(std::chrono::steady_clock::now() - begin, 90ms);
  }
}

TEST_F(WallClockTest, OfOthersStaysAsItIs) {
  CommandedClient stepped("file://" + directory_.path() + "/locks", clock_->variables());
  CommandedClient other("file://" + directory_.path() + "/locks");
  clock_->step(5h);
  const auto apart = clocks_of(stepped).wall - clocks_of(other).wall;
  EXPECT_GT(apart, 4h);
  EXPECT_LT(apart, 6h);
}

TEST_F(WallClockTest, LeavesTheTimesOfFilesAlone) {
  clock_->step(-48h);
  CommandedClient client("file://" + directory_.path() + "/locks", clock_->variables());
  ASSERT_TRUE(client.tell("acquire a 0").starts_with("granted a ")) << client.said();
  for (const auto& entry : std::filesystem::directory_iterator(directory_.path() + "/locks")) {
    EXPECT_LT(std::filesystem::file_time_type::clock::now() - entry.last_write_time(), 24h) << entry.path();
  }
}

TEST_F(WallClockTest, OfAKilledChildLeavesNothing) {
  const auto traces = [](pid_t pid) {
    int found = 0;
    for (const auto& entry : std::filesystem::directory_iterator("/dev/shm")) {
      const std::string name = entry.path().filename().string();
      if (name.find("faketime") != std::string::npos && name.ends_with("_" + std::to_string(pid))) ++found;
    }
    return found;
  };
  rig::ChildProcess child({"cat", "/dev/zero"}, clock_->variables());
  const pid_t pid = child.pid();
  ASSERT_TRUE(child.wait_until([](const std::string& output) { return !output.empty(); }, 60s));
  child.signal(SIGKILL);
  (void)child.wait();
  EXPECT_EQ(traces(pid), 2);
  WallClock::remove_traces(pid);
  EXPECT_EQ(traces(pid), 0);
}

TEST_F(WallClockTest, NeedsADirectoryToWriteTo) {
  EXPECT_THROW(WallClock(directory_.path() + "/nowhere"), std::system_error);
}

}  // namespace
}  // namespace dlock::torture

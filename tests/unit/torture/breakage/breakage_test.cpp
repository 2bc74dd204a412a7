// Each fault of a machine has the effect that the tests with services rely on, and ends.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <time.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <sstream>
#include <string>
#include <system_error>
#include <vector>

#include "tests/torture/breakage/small_disk.hpp"
#include "tests/torture/breakage/wall_clock.hpp"
#include "tests/torture/client/commanded_client.hpp"
#include "torture/nemesis/used_up_descriptors.hpp"
#include "torture/rig/scratch_directory.hpp"
#include "util/unique_fd.hpp"

namespace dlock::torture {
namespace {

using namespace std::chrono_literals;
using std::chrono::milliseconds;

// --- A small disk ----------------------------------------------------------------------------------------------------

class SmallDiskTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string why_not;
    if (!SmallDisk::available(why_not)) GTEST_SKIP() << "needs privilege: " << why_not;
    disk_ = std::make_unique<SmallDisk>(directory_.path() + "/disk");
  }

  // 0, or the error.
  [[nodiscard]] int write_file(const std::string& name) const {
    const util::UniqueFd file(::open((disk_->path() + "/" + name).c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    return file && ::write(file.get(), "x", 1) == 1 ? 0 : errno;
  }

  rig::ScratchDirectory directory_;
  std::unique_ptr<SmallDisk> disk_;
};

TEST_F(SmallDiskTest, FilledDisk_HasNoSpaceUntilItIsFreedOrUnmounted) {
  EXPECT_EQ(write_file("a"), 0);
  disk_->fill();
  EXPECT_EQ(write_file("b"), ENOSPC);
  EXPECT_EQ(write_file("a"), 0);  // the page is there
  disk_->free();
  EXPECT_EQ(write_file("b"), 0);
  const std::string path = disk_->path();
  const util::UniqueFd open(::open((path + "/a").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  ASSERT_TRUE(open);
  disk_.reset();
  EXPECT_TRUE(std::filesystem::is_empty(path));
  EXPECT_EQ(::write(open.get(), "x", 1), 1);
}

// --- Descriptors -----------------------------------------------------------------------------------------------------

// A gap between the numbers of the open ones would be one to use.
TEST(UsedUpDescriptorsTest, UsedUpDescriptors_LeaveNoneToOpenInTheirProcess) {
  if (std::string why; !UsedUpDescriptors::available(why)) GTEST_SKIP() << "needs privilege: " << why;
  const auto open_something = [] {  // the error, or 0
    const util::UniqueFd file(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    return file ? 0 : errno;
  };
  util::UniqueFd gap(::open("/dev/zero", O_RDONLY | O_CLOEXEC));
  const util::UniqueFd above(::open("/dev/zero", O_RDONLY | O_CLOEXEC));
  gap.reset();
  rlimit before{};
  rlimit after{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  int during = 0;
  {
    const UsedUpDescriptors none_left(::getpid());
    during = open_something();
  }
  EXPECT_EQ(during, EMFILE);
  EXPECT_EQ(open_something(), 0);
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &after), 0);
  EXPECT_EQ(after.rlim_cur, before.rlim_cur);
  EXPECT_EQ(after.rlim_max, before.rlim_max);
  EXPECT_THROW(UsedUpDescriptors(999'999'999), std::system_error);
  auto child = std::make_unique<rig::ChildProcess>(std::vector<std::string>{"cat", "/dev/zero"});
  const UsedUpDescriptors none_left(child->pid());
  EXPECT_EQ(open_something(), 0);
  child.reset();  // a process that has ended needs none back
}

// --- The wall clock --------------------------------------------------------------------------------------------------

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

  // Expects the child's clocks between two readings of ours; its wall clock so, apart from the offset.
  static void expect_clocks(CommandedClient& client, milliseconds offset) {
    const std::array clocks{CLOCK_REALTIME, CLOCK_MONOTONIC, CLOCK_BOOTTIME, CLOCK_BOOTTIME};  // the last: of leases
    std::array<milliseconds, 4> before{};
    for (std::size_t i = 0; i < clocks.size(); ++i) before[i] = now(clocks[i]);
    std::istringstream words(client.tell("clocks"));
    for (std::size_t i = 0; i < clocks.size(); ++i) {
      std::int64_t read = 0;
      EXPECT_TRUE(words >> read) << client.said();
      const milliseconds value = milliseconds(read) - (i == 0 ? offset : 0ms);
      const milliseconds slack = i == 0 ? 1s : 0s;
      EXPECT_GE(value, before[i] - slack) << "clock " << i;
      EXPECT_LE(value, now(clocks[i]) + slack) << "clock " << i;
    }
  }

  rig::ScratchDirectory directory_;
  std::string url_ = "file://" + directory_.path() + "/locks";
  std::unique_ptr<WallClock> clock_;
};

// A wait that ends by its deadline is one that a timer ended.
TEST_F(WallClockTest, SteppedWallClock_LeavesOtherClocksTimersFilesAndProcessesAlone) {
  CommandedClient other(url_);
  ASSERT_TRUE(other.tell("acquire a 0").starts_with("granted a ")) << other.said();
  CommandedClient client(url_, clock_->variables());
  expect_clocks(client, 0h);
  for (const auto step : {3h, -9h, -24h, 48h, 0h}) {
    clock_->step(step);
    expect_clocks(client, clock_->offset());
    const auto begin = std::chrono::steady_clock::now();
    const std::string answer = client.tell("acquire a 100");
    EXPECT_TRUE(answer.starts_with("error timed out")) << answer;
    EXPECT_GE(std::chrono::steady_clock::now() - begin, 90ms);
  }
  EXPECT_EQ(clock_->offset(), 18h);
  expect_clocks(other, 0h);
  clock_->step(-66h);
  ASSERT_TRUE(client.tell("acquire b 0").starts_with("granted b ")) << client.said();
  for (const auto& entry : std::filesystem::directory_iterator(directory_.path() + "/locks")) {
    EXPECT_LT(std::filesystem::file_time_type::clock::now() - entry.last_write_time(), 24h) << entry.path();
  }
}

TEST_F(WallClockTest, KilledChild_LeavesNoTraces) {
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

}  // namespace
}  // namespace dlock::torture

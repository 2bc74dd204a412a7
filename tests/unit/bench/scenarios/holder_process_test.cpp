#include "bench/scenarios/holder_process.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>

#include <chrono>
#include <fstream>
#include <iterator>
#include <stdexcept>

#include "torture/rig/scratch_directory.hpp"

namespace dlock::bench {
namespace {

using std::chrono::hours;
using std::chrono::nanoseconds;

// Holders are shell scripts here, which write down what they were started with.
class HolderProcessTest : public testing::Test {
 protected:
  std::string program(const std::string& script) {
    const std::string path = directory_.path() + "/holder";
    std::ofstream(path) << "#!/bin/sh\n"
                        << "echo \"$*; $DLOCK_URL; $$\" > " << noted() << "\n"
                        << script << "\n";
    EXPECT_EQ(::chmod(path.c_str(), 0700), 0);
    return path;
  }
  [[nodiscard]] std::string noted() const { return directory_.path() + "/noted"; }
  [[nodiscard]] std::string note() const {
    std::ifstream in(noted());
    return {std::istreambuf_iterator<char>(in), {}};
  }
  static std::string failure_of(HolderProcess& holder, nanoseconds limit) {
    try {
      return holder.await_lock(limit, {}) ? "it has the lock" : "stopped";
    } catch (const std::runtime_error& error) {
      return error.what();
    }
  }

  const rig::ScratchDirectory directory_;
};

TEST_F(HolderProcessTest, HasTheLockWhenItPrintsAToken) {
  HolderProcess holder(program("echo 1763719872512034; exec sleep 1000"), "redis://:secret@db1", "2000ms", "a name");
  EXPECT_TRUE(holder.await_lock(hours(1), {}));
  EXPECT_THAT(note(), testing::StartsWith("hold --quiet --lease 2000ms a name; redis://:secret@db1; "));
}

TEST_F(HolderProcessTest, IsDeadOnceItWasKilled) {
  HolderProcess holder(program("echo 1; exec sleep 1000"), "memory://", "2s", "x");
  ASSERT_TRUE(holder.await_lock(hours(1), {}));
  const std::string text = note();
  const int pid = std::stoi(text.substr(text.rfind(' ')));
  EXPECT_EQ(::kill(pid, 0), 0);
  holder.kill();
  EXPECT_NE(::kill(pid, 0), 0);
}

TEST_F(HolderProcessTest, DoesNotOutliveItsObject) {
  int pid = 0;
  {
    HolderProcess holder(program("echo 1; exec sleep 1000"), "memory://", "2s", "x");
    ASSERT_TRUE(holder.await_lock(hours(1), {}));
    const std::string text = note();
    pid = std::stoi(text.substr(text.rfind(' ')));
  }
  EXPECT_NE(::kill(pid, 0), 0);
}

TEST_F(HolderProcessTest, HasTheLockWhateverElseItPrints) {
  HolderProcess holder(program("printf 'trouble 1\\n1763719872512034\\ntrouble 2\\n'; exec sleep 1000"), "memory://",
                       "2s", "x");
  EXPECT_TRUE(holder.await_lock(hours(1), {}));
}

TEST_F(HolderProcessTest, AnErrorIsNoToken) {
  HolderProcess holder(program("echo 'error 12' >&2; exit 74"), "memory://", "2s", "x");
  EXPECT_THAT(failure_of(holder, hours(1)), testing::HasSubstr("the holder ended: error 12"));
}

TEST_F(HolderProcessTest, AProgramThatIsNotThereIsAnError) {
  HolderProcess holder(directory_.path() + "/nothing", "memory://", "2s", "x");
  EXPECT_THAT(failure_of(holder, hours(1)), testing::HasSubstr("cannot execute the program"));
}

TEST_F(HolderProcessTest, IsNotWaitedForBeyondTheLimit) {
  HolderProcess holder(program("exec sleep 1000"), "memory://", "2s", "x");
  EXPECT_THAT(failure_of(holder, nanoseconds(1)), testing::HasSubstr("in time"));
}

TEST_F(HolderProcessTest, IsNotWaitedForAfterAStop) {
  HolderProcess holder(program("exec sleep 1000"), "memory://", "2s", "x");
  std::stop_source stop;
  stop.request_stop();
  EXPECT_FALSE(holder.await_lock(hours(1), stop.get_token()));
}

}  // namespace
}  // namespace dlock::bench

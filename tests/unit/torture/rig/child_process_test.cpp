#include "torture/rig/child_process.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <thread>

namespace dlock::rig {
namespace {

char state_of(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string text;
  std::getline(file, text);
  return text.at(text.rfind(')') + 2);
}

TEST(ChildProcess, Output_IsAwaitedAndVariablesReplaceOurs) {
  ASSERT_EQ(::setenv("DLOCK_TEST_VARIABLE", "ours", 1), 0);
  ChildProcess child({"sh", "-c", "echo $DLOCK_TEST_VARIABLE; echo two >&2"}, {"DLOCK_TEST_VARIABLE=its own"});
  EXPECT_TRUE(child.wait_for_output("two\n"));
  EXPECT_FALSE(child.wait_for_output("three"));
  EXPECT_EQ(child.wait(), 0);
  EXPECT_EQ(child.output(), "its own\ntwo\n");
  EXPECT_FALSE(child.running());
}

TEST(ChildProcess, Wait_EndsAtTheLimitOrAStop) {
  const ChildProcess child({"sleep", "1000"});
  const auto never = [](const std::string&) { return false; };
  std::stop_source stop;
  stop.request_stop();
  EXPECT_FALSE(child.wait_until(never, std::chrono::hours(1), stop.get_token()));
  EXPECT_FALSE(child.wait_until(never, std::chrono::nanoseconds(1)));
  EXPECT_FALSE(child.output_ended());
}

TEST(ChildProcess, Status_IsThatOfAShell) {
  EXPECT_EQ(ChildProcess({"sh", "-c", "exit 3"}).wait(), 3);
  ChildProcess child({"sh", "-c", "echo up; exec sleep 1000"});
  ASSERT_TRUE(child.wait_for_output("up"));
  EXPECT_TRUE(child.running());
  child.signal(SIGTERM);
  EXPECT_EQ(child.wait(), 128 + SIGTERM);
  EXPECT_THROW(child.signal(SIGTERM), std::logic_error) << "its number may be that of another process now";
  ChildProcess no_program({"/nonexistent/program"});
  EXPECT_TRUE(no_program.wait_for_output("cannot execute"));
  EXPECT_EQ(no_program.wait(), 127);
  EXPECT_EQ(run_command({"echo", "done"}), "done\n");
  EXPECT_THROW((void)run_command({"false"}), std::runtime_error);
}

TEST(ChildProcess, FrozenProcess_IsStoppedAndEndsWithItsObject) {
  pid_t pid = 0;
  {
    const ChildProcess child({"sleep", "1000"});
    pid = child.pid();
    child.freeze();
    EXPECT_EQ(state_of(pid), 'T');
    child.thaw();
    EXPECT_TRUE(child.running());
    child.freeze();
  }
  EXPECT_EQ(::kill(pid, 0), -1);
}

TEST(ChildProcess, EndOfTheStartingThread_KillsTheProcess) {
  std::unique_ptr<ChildProcess> child;
  std::thread([&] {
    child = std::make_unique<ChildProcess>(std::vector<std::string>{"sh", "-c", "echo up; exec sleep 1000"});
    EXPECT_TRUE(child->wait_for_output("up"));
  }).join();
  EXPECT_EQ(child->wait(), 128 + SIGKILL);
}

}  // namespace
}  // namespace dlock::rig

// What the programs of the suite say at their end, and their exit status.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include <dlock/client.hpp>
#include <dlock/conformance/suite.hpp>

#include "mutants/run_program.hpp"

namespace dlock::conformance {
namespace {

constexpr auto guard = std::chrono::seconds(20);

Finished mutant(std::vector<std::string> arguments, std::chrono::milliseconds hang = guard) {
  arguments.insert(arguments.begin(), DLOCK_MUTANT_PROGRAM);
  return run_program(std::move(arguments), hang);
}

Finished program(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), DLOCK_CONFORMANCE_PROGRAM);
  return run_program(std::move(arguments), guard);
}

bool says(const Finished& finished, const std::string& text) {
  return finished.output.find(text) != std::string::npos;
}

TEST(Report, CountsWhatPassed) {
  const Finished finished = mutant({"--gtest_filter=*C13_ASecondReleaseSaysNo*"});
  EXPECT_EQ(finished.status, exit_passed);
  EXPECT_TRUE(says(finished, "dlock-conformance: 1 passed, 0 failed, 0 untested, 0 not applicable")) << finished.output;
}

TEST(Report, WhatDoesNotApplyIsListedButIsNoShortcoming) {
  const Finished finished = mutant({"--gtest_filter=*C07_AKilledWaiterDelaysNobody*"});
  EXPECT_EQ(finished.status, exit_passed);
  EXPECT_TRUE(says(finished, "0 passed, 0 failed, 0 untested, 1 not applicable")) << finished.output;
  EXPECT_TRUE(says(finished, "Not applicable, by what the backend says of itself:")) << finished.output;
}

// A fixture of memory:// that can do little leaves the first of these untested, and not the second.
constexpr const char* needs_a_clock = "Contract.C04_TokensGrowWhenTheWallClockIsSetBack";
constexpr const char* needs_nothing = "Contract.C09_BusyIsNotAnError";
constexpr const char* both = "--gtest_filter=*C04_TokensGrowWhenTheWallClockIsSetBack*:*C09_BusyIsNotAnError*";

TEST(Report, ARunThatLeavesUntestedWhatIsListedHasPassed) {
  const Finished finished = mutant({std::string("--untested=") + needs_a_clock, both});
  EXPECT_EQ(finished.status, exit_passed) << finished.output;
  EXPECT_TRUE(says(finished, "1 passed, 0 failed, 1 untested, 0 not applicable")) << finished.output;
}

TEST(Report, WhatIsUntestedAndNotListedIsAFailure) {
  const Finished finished = mutant({"--untested=", both});
  EXPECT_EQ(finished.status, exit_failed);
  EXPECT_TRUE(says(finished, std::string("  ") + needs_a_clock + "/listed\n    was left untested, but is not listed"))
      << finished.output;
}

TEST(Report, WhatIsListedAndWasTestedIsAFailure) {
  const Finished finished = mutant({std::string("--untested=") + needs_a_clock + "," + needs_nothing, both});
  EXPECT_EQ(finished.status, exit_failed);
  EXPECT_TRUE(says(finished, std::string("  ") + needs_nothing + "/listed\n    is listed, but was not left untested"))
      << finished.output;
}

TEST(Report, WhatIsListedAndNoTestIsAFailure) {
  const Finished finished = mutant({std::string("--untested=") + needs_a_clock + ",Contract.C99_NoSuchTest", both});
  EXPECT_EQ(finished.status, exit_failed);
  EXPECT_TRUE(says(finished, "  Contract.C99_NoSuchTest/listed\n    is listed, but is no test")) << finished.output;
}

TEST(Report, WhatIsListedAndNotSelectedIsNotCompared) {
  const Finished finished =
      mutant({std::string("--untested=") + needs_a_clock, "--gtest_filter=*C09_BusyIsNotAnError*"});
  EXPECT_EQ(finished.status, exit_passed) << finished.output;
}

TEST(Report, ARunOfNothingIsAFailure) {
  EXPECT_EQ(mutant({"--gtest_filter=*NoSuchTest*"}).status, exit_failed);
}

TEST(Report, AnExceptionInAThreadIsAFailureAndTheRunGoesOn) {
  const Finished finished =
      mutant({"--mutation=busy_is_error", "--gtest_filter=*C15_ManyThreadsMayShareALockAndItsLeases*"});
  EXPECT_EQ(finished.status, exit_failed);
  EXPECT_TRUE(says(finished, "a thread of the test ended with: somebody else holds the lock")) << finished.output;
  EXPECT_TRUE(says(finished, "dlock-conformance: 0 passed, 1 failed")) << finished.output;
}

TEST(Report, ATestThatNeverEndsIsGivenUp) {
  const Finished finished =
      mutant({"--mutation=blocks", "--gtest_filter=*C13_ASecondReleaseSaysNo*"}, std::chrono::milliseconds(200));
  EXPECT_EQ(finished.status, exit_failed);
  EXPECT_TRUE(says(finished, "[   HANG   ]")) << finished.output;
}

TEST(ConformanceProgram, ListsWhatItCouldNotTestAndSaysSoInItsStatus) {
  const Finished finished =
      program({"--url", "memory://report", "--gtest_filter=*C04_TokensGrowWhenTheWallClockIsSetBack/memory"});
  EXPECT_EQ(finished.status, exit_untested);
  EXPECT_TRUE(says(finished,
                   "UNTESTED, for want of means:\n  Contract.C04_TokensGrowWhenTheWallClockIsSetBack/memory\n"
                   "    the clock of the service cannot be stepped"))
      << finished.output;
  EXPECT_TRUE(says(finished, "0 passed, 0 failed, 1 untested, 0 not applicable")) << finished.output;
}

TEST(ConformanceProgram, AllowsWhatIsUntestedWhenAsked) {
  const Finished finished = program({"--url", "memory://report", "--allow-untested",
                                     "--gtest_filter=*C04_TokensGrowWhenTheWallClockIsSetBack/memory"});
  EXPECT_EQ(finished.status, exit_passed);
  EXPECT_TRUE(says(finished, "1 untested")) << finished.output;
}

TEST(ConformanceProgram, KillsHoldsByBreakingLocks) {
  const Finished finished =
      program({"--url", "memory://report", "--gtest_filter=*C05_StaleReleaseNeverFreesTheNextHolder*"});
  EXPECT_EQ(finished.status, exit_passed);
  EXPECT_TRUE(says(finished, "[       OK ] Contract.C05_StaleReleaseNeverFreesTheNextHolder/memory"))
      << finished.output;
}

TEST(ConformanceProgram, RefusesAUrlThatItCannotUse) {
  EXPECT_EQ(program({"--url", "nosuch://host"}).status, exit_usage);
}

TEST(ConformanceProgram, SaysWhatIsWrongWithTheServiceInsteadOfRunningTests) {
  const Finished finished = program({"--url", "file:///proc/self/locks"});
  EXPECT_EQ(finished.status, exit_usage);
  EXPECT_TRUE(finished.output.starts_with("dlock-conformance: cannot make directory /proc/self/locks: "))
      << finished.output;
  EXPECT_FALSE(says(finished, "[ RUN      ]")) << finished.output;
}

TEST(ConformanceProgram, SaysThatTheServiceIsOutOfReachWithoutThePassword) {
  const auto schemes = backends();
  if (std::find(schemes.begin(), schemes.end(), "redis") == schemes.end()) GTEST_SKIP() << "built without Redis";
  const Finished finished = program({"--url", "redis://somebody:secret@127.0.0.1:1?connect_timeout=1s"});
  EXPECT_EQ(finished.status, exit_usage);
  EXPECT_TRUE(says(finished, "127.0.0.1:1")) << finished.output;
  EXPECT_FALSE(says(finished, "secret")) << finished.output;
  EXPECT_FALSE(says(finished, "[ RUN      ]")) << finished.output;
}

TEST(ConformanceProgram, RefusesArgumentsThatItDoesNotKnow) {
  EXPECT_EQ(program({"--url", "memory://report", "--bogus"}).status, exit_usage);
}

}  // namespace
}  // namespace dlock::conformance

// What the programs of the suite say at their end, and their exit status.
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <utility>
#include <vector>

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

TEST(Report, ARunOfNothingIsAFailure) {
  EXPECT_EQ(mutant({"--gtest_filter=*NoSuchTest*"}).status, exit_failed);
}

TEST(Report, ATestThatNeverEndsIsGivenUp) {
  const Finished finished =
      mutant({"--mutation=blocks", "--gtest_filter=*C13_ASecondReleaseSaysNo*"}, std::chrono::milliseconds(200));
  EXPECT_EQ(finished.status, exit_failed);
  EXPECT_TRUE(says(finished, "[   HANG   ]")) << finished.output;
}

TEST(ConformanceProgram, ListsWhatItCouldNotTestAndSaysSoInItsStatus) {
  const Finished finished =
      program({"--url", "memory://report", "--gtest_filter=*C04_TokensGrowWhenTheWallClockIsSetBack*"});
  EXPECT_EQ(finished.status, exit_untested);
  EXPECT_TRUE(says(finished,
                   "UNTESTED, for want of means:\n  Contract.C04_TokensGrowWhenTheWallClockIsSetBack/memory\n"
                   "    the clock of the service cannot be stepped"))
      << finished.output;
  EXPECT_TRUE(says(finished, "0 passed, 0 failed, 1 untested, 0 not applicable")) << finished.output;
}

TEST(ConformanceProgram, AllowsWhatIsUntestedWhenAsked) {
  const Finished finished = program(
      {"--url", "memory://report", "--allow-untested", "--gtest_filter=*C04_TokensGrowWhenTheWallClockIsSetBack*"});
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
  EXPECT_EQ(program({"--url", "nosuch://host"}).status, 2);
}

TEST(ConformanceProgram, RefusesArgumentsThatItDoesNotKnow) {
  EXPECT_EQ(program({"--url", "memory://report", "--bogus"}).status, 2);
}

}  // namespace
}  // namespace dlock::conformance

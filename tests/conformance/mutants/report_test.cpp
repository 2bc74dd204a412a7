// What the programs of the suite say at their end, and their exit status.
#include <gtest/gtest.h>

#include <chrono>
#include <ostream>
#include <string>
#include <vector>

#include <dlock/conformance/suite.hpp>

#include "mutants/run_program.hpp"

namespace dlock::conformance {
namespace {

const std::string mutant = DLOCK_MUTANT_PROGRAM;
const std::string program = DLOCK_CONFORMANCE_PROGRAM;
const std::string untested = "--untested=";
// A fixture of memory:// that can do little leaves the first of these untested, and not the second.
const std::string needs_a_clock = "Contract.C04_TokensGrowWhenTheWallClockIsSetBack";
const std::string needs_nothing = "Contract.C09_BusyIsNotAnError";
const std::string both = "--gtest_filter=*C04_TokensGrowWhenTheWallClockIsSetBack*:*C09_BusyIsNotAnError*";
const std::string one_of_memory = "--gtest_filter=*C04_TokensGrowWhenTheWallClockIsSetBack/memory";

struct Row {
  std::string name;
  std::vector<std::string> command;
  int status;
  std::vector<std::string> prints = {};
  std::vector<std::string> hides = {};
  std::chrono::milliseconds hang = std::chrono::seconds(20);
};
void PrintTo(const Row& row, std::ostream* out) {
  *out << row.name;
}

const std::vector<Row> rows{
    {"OneTest_IsCounted",
     {mutant, "--gtest_filter=*C13_ASecondReleaseSaysNo*"},
     exit_passed,
     {"dlock-conformance: 1 passed, 0 failed, 0 untested, 0 not applicable"}},
    {"TestThatDoesNotApply_IsListedAndPasses",
     {mutant, "--gtest_filter=*C07_AKilledWaiterDelaysNobody*"},
     exit_passed,
     {"0 passed, 0 failed, 0 untested, 1 not applicable", "Not applicable, by what the backend says of itself:"}},
    {"UntestedAndListed_Passes",
     {mutant, untested + needs_a_clock, both},
     exit_passed,
     {"1 passed, 0 failed, 1 untested, 0 not applicable"}},
    {"UntestedAndNotListed_Fails",
     {mutant, untested, both},
     exit_failed,
     {"  " + needs_a_clock + "/listed\n    was left untested, but is not listed"}},
    {"ListedAndTested_Fails",
     {mutant, untested + needs_a_clock + "," + needs_nothing, both},
     exit_failed,
     {"  " + needs_nothing + "/listed\n    is listed, but was not left untested"}},
    {"ListedAndNoTest_Fails",
     {mutant, untested + needs_a_clock + ",Contract.C99_NoSuchTest", both},
     exit_failed,
     {"  Contract.C99_NoSuchTest/listed\n    is listed, but is no test"}},
    {"ListedAndNotSelected_Passes", {mutant, untested + needs_a_clock, "--gtest_filter=*C09_BusyIsNot*"}, exit_passed},
    {"NoTest_Fails", {mutant, "--gtest_filter=*NoSuchTest*"}, exit_failed},
    {"ExceptionInAThread_FailsAndTheRunContinues",
     {mutant, "--mutation=busy_is_error", "--gtest_filter=*C15_ManyThreadsMayShareALockAndItsLeases*"},
     exit_failed,
     {"a thread of the test ended with: somebody else holds the lock", "dlock-conformance: 0 passed, 1 failed"}},
    {"TestThatHangs_EndsTheRun",
     {mutant, "--mutation=blocks", "--gtest_filter=*C13_ASecondReleaseSaysNo*"},
     exit_failed,
     {"[   HANG   ]"},
     {},
     std::chrono::milliseconds(200)},
    {"Program_ListsUntestedTests",
     {program, "--url", "memory://report", one_of_memory},
     exit_untested,
     {"UNTESTED, for want of means:\n  Contract.C04_TokensGrowWhenTheWallClockIsSetBack/memory\n"
      "    the clock of the service cannot be stepped",
      "0 passed, 0 failed, 1 untested, 0 not applicable"}},
    {"Program_PermitsUntestedTests",
     {program, "--url", "memory://report", "--allow-untested", one_of_memory},
     exit_passed,
     {"1 untested"}},
    {"Program_KillsHoldsByBreakingLocks",
     {program, "--url", "memory://report", "--gtest_filter=*C05_StaleReleaseNeverFreesTheNextHolder*"},
     exit_passed,
     {"[       OK ] Contract.C05_StaleReleaseNeverFreesTheNextHolder/memory"}},
    {"Program_RefusesUnknownSchemes", {program, "--url", "nosuch://host"}, exit_usage},
    {"Program_RefusesUnknownArguments", {program, "--url", "memory://report", "--bogus"}, exit_usage},
    {"Program_ReportsAUselessService",
     {program, "--url", "file:///proc/self/locks"},
     exit_usage,
     {"dlock-conformance: cannot make directory /proc/self/locks: "},
     {"[ RUN      ]"}},
#ifdef DLOCK_TEST_WITH_REDIS
    {"Program_ReportsAnUnreachableServiceWithoutItsPassword",
     {program, "--url", "redis://somebody:secret@127.0.0.1:1?connect_timeout=1s"},
     exit_usage,
     {"127.0.0.1:1"},
     {"secret", "[ RUN      ]"}},
#endif
};

class Report : public ::testing::TestWithParam<Row> {};

TEST_P(Report, HasOutputAndStatus) {
  const Finished finished = run_program(GetParam().command, GetParam().hang);
  EXPECT_EQ(finished.status, GetParam().status) << finished.output;
  for (const std::string& text : GetParam().prints) {
    EXPECT_NE(finished.output.find(text), std::string::npos) << text << "\nis not in\n" << finished.output;
  }
  for (const std::string& text : GetParam().hides) {
    EXPECT_EQ(finished.output.find(text), std::string::npos) << text << "\nis in\n" << finished.output;
  }
}

INSTANTIATE_TEST_SUITE_P(, Report, ::testing::ValuesIn(rows), [](const auto& each) { return each.param.name; });

}  // namespace
}  // namespace dlock::conformance

// The suite tested: each broken backend must fail the test that is there for it, and the correct one must pass it; and
// what the programs of the suite say at their end, with their exit status.
#include <gtest/gtest.h>

#include <chrono>
#include <ostream>
#include <string>
#include <vector>

#include "program_run.hpp"

namespace dlock::conformance {
namespace {

const std::string mutant_program = DLOCK_MUTANT_PROGRAM;
const std::string conformance_program = DLOCK_CONFORMANCE_PROGRAM;

struct Expectation {
  std::string mutation;
  std::string test;
  std::string suite = "Contract";
};

Finished run(const std::string& mutation, const Expectation& expected) {
  const std::string option = expected.suite == "Contract" ? "--mutation=" : "--sharing-mutation=";
  return run_program({mutant_program, option + mutation,
                      "--gtest_filter=" + expected.suite + "." + expected.test + "/*", "--gtest_color=no"},
                     std::chrono::milliseconds(1500));
}

void PrintTo(const Expectation& expectation, std::ostream* out) {
  *out << expectation.mutation;
}

class Mutant : public ::testing::TestWithParam<Expectation> {};

TEST_P(Mutant, FailsTheTestThatIsThereForIt) {
  const std::string test = " " + GetParam().suite + "." + GetParam().test + "/mutant";
  const Finished broken = run(GetParam().mutation, GetParam());
  EXPECT_EQ(broken.status, exit_failed) << broken.output;
  EXPECT_NE(broken.output.find("[  FAILED  ]" + test), std::string::npos) << broken.output;
  const Finished correct = run("none", GetParam());
  EXPECT_EQ(correct.status, exit_passed) << correct.output;
  EXPECT_NE(correct.output.find("[       OK ]" + test), std::string::npos) << correct.output;
}

INSTANTIATE_TEST_SUITE_P(
    , Mutant,
    ::testing::Values(Expectation{"blind_release", "C05_StaleReleaseNeverFreesTheNextHolder"},
                      Expectation{"renewal_revives", "C10_RenewalNeverTakesAKilledHoldBack"},
                      Expectation{"renewal_lies", "C03_AKilledHoldIsSignalled"},
                      Expectation{"token_repeats", "C04_TokensGrowWithEveryLease"},
                      Expectation{"late_grant", "C02_ValidityIsCountedFromBeforeTheRequestEvenIfTheAnswerIsLate"},
                      Expectation{"late_renewal", "C02_ARenewalIsCountedFromBeforeItsRequestEvenIfTheAnswerIsLate"},
                      Expectation{"late_loss", "C03_TheEndOfALeaseIsSignalledInTimeForTheNextHolder"},
                      Expectation{"residue_on_give_up", "C06_AWaiterThatTimedOutLeavesNothing"},
                      Expectation{"lost_wake_up", "C11_AWaiterIsWokenByARelease"},
                      Expectation{"early_expiry", "C01_ALeaseThatRanOutIsNotHeldWhenTheNextHolderEnters"},
                      Expectation{"two_holders", "C01_WhileOneHoldsNobodyElseEnters"},
                      Expectation{"folded_case", "C14_LookAlikesAreDifferentLocks"},
                      Expectation{"decoded_name", "C14_LookAlikesAreDifferentLocks"},
                      Expectation{"busy_is_error", "C09_BusyIsNotAnError"},
                      Expectation{"failure_is_busy", "C09_AServiceThatIsCutOffIsAnErrorNotBusy"},
                      Expectation{"last_comes_first", "C12_WaitersOfAClientAreServedInOrderWhereFair"},
                      Expectation{"release_lies", "C13_AReleaseOfAKilledHoldSaysNo"},
                      Expectation{"release_waits_for_lease", "C13_AReleaseFreesTheLockAtOnce"},
                      Expectation{"forgotten_clean_up", "C06_AWaiterCancelledWhileUnreachableLeavesNothing"},
                      Expectation{"shared_expiry", "C07_ADeadReadersLeaseEndsWhileOthersRenewTheirs",
                                  "ReadWriteContract"},
                      Expectation{"one_reader_enters", "C12_ReadersWhoWaitEnterInOneWave", "ReadWriteContract"},
                      Expectation{"reader_jumps_queue", "C12_NobodyEntersBeforeAWriterWhoWaits", "ReadWriteContract"},
                      Expectation{"stale_count", "C01_NoMoreThanAllPermitsAreOut", "PermitContract"},
                      Expectation{"permit_of_another", "C05_StaleReleaseNeverFreesTheNextHolder"},
                      Expectation{"some_kept", "C06_SeveralLocksOfWhichOneIsHeldLeaveNothing"}),
    [](const ::testing::TestParamInfo<Expectation>& each) { return each.param.mutation; });

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
     {mutant_program, "--mutation=none", "--gtest_filter=*C13_ASecondReleaseSaysNo*"},
     exit_passed,
     {"dlock-conformance: 1 passed, 0 failed, 0 untested, 0 not applicable"}},
    {"TestThatDoesNotApply_IsListedAndPasses",
     {mutant_program, "--mutation=none", "--gtest_filter=*C07_AKilledWaiterDelaysNobody*"},
     exit_passed,
     {"0 passed, 0 failed, 0 untested, 1 not applicable", "Not applicable, by what the backend says of itself:"}},
    {"UntestedAndListed_Passes",
     {mutant_program, untested + needs_a_clock, both},
     exit_passed,
     {"1 passed, 0 failed, 1 untested, 0 not applicable"}},
    {"UntestedAndNotListed_Fails",
     {mutant_program, untested, both},
     exit_failed,
     {"  " + needs_a_clock + "/listed\n    was left untested, but is not listed"}},
    {"ListedAndTested_Fails",
     {mutant_program, untested + needs_a_clock + "," + needs_nothing, both},
     exit_failed,
     {"  " + needs_nothing + "/listed\n    is listed, but was not left untested"}},
    {"ListedAndNoTest_Fails",
     {mutant_program, untested + needs_a_clock + ",Contract.C99_NoSuchTest", both},
     exit_failed,
     {"  Contract.C99_NoSuchTest/listed\n    is listed, but is no test"}},
    {"ListedAndNotSelected_Passes",
     {mutant_program, untested + needs_a_clock, "--gtest_filter=*C09_BusyIsNot*"},
     exit_passed},
    {"NoTest_Fails", {mutant_program, "--mutation=none", "--gtest_filter=*NoSuchTest*"}, exit_failed},
    {"ExceptionInAThread_FailsAndTheRunContinues",
     {mutant_program, "--mutation=busy_is_error", "--gtest_filter=*C15_ManyThreadsMayShareALockAndItsLeases*"},
     exit_failed,
     {"a thread of the test ended with: somebody else holds the lock", "dlock-conformance: 0 passed, 1 failed"}},
    {"LossWhereARenewalIsAwaited_IsNoHang",
     {mutant_program, "--mutation=renewal_refused", "--gtest_filter=*C10_RenewalKeeps*"},
     exit_failed,
     {"a lease is lost, and not renewed"},
     {"hang"}},
    {"TestThatHangs_EndsTheRun",
     {mutant_program, "--mutation=blocks", "--gtest_filter=*C13_ASecondReleaseSaysNo*"},
     exit_failed,
     {"[   HANG   ]"},
     {},
     std::chrono::milliseconds(200)},
    {"Program_ListsUntestedTests",
     {conformance_program, "--url", "memory://report", one_of_memory},
     exit_untested,
     {"UNTESTED, for want of means:\n  Contract.C04_TokensGrowWhenTheWallClockIsSetBack/memory\n"
      "    the clock of the service cannot be stepped",
      "0 passed, 0 failed, 1 untested, 0 not applicable"}},
    {"Program_PermitsUntestedTests",
     {conformance_program, "--url", "memory://report", "--allow-untested", one_of_memory},
     exit_passed,
     {"1 untested"}},
    {"Program_KillsHoldsByBreakingLocks",
     {conformance_program, "--url", "memory://report", "--gtest_filter=*C05_StaleReleaseNeverFreesTheNextHolder*"},
     exit_passed,
     {"[       OK ] Contract.C05_StaleReleaseNeverFreesTheNextHolder/memory"}},
    {"Program_RefusesUnknownSchemes", {conformance_program, "--url", "nosuch://host"}, exit_usage},
    {"Program_RefusesUnknownArguments", {conformance_program, "--url", "memory://report", "--bogus"}, exit_usage},
    {"Program_ReportsAUselessService",
     {conformance_program, "--url", "file:///proc/self/locks"},
     exit_usage,
     {"dlock-conformance: cannot make directory /proc/self/locks: "},
     {"[ RUN      ]"}},
#ifdef DLOCK_TEST_WITH_REDIS
    {"Program_ReportsAnUnreachableServiceWithoutItsPassword",
     {conformance_program, "--url", "redis://somebody:secret@127.0.0.1:1?connect_timeout=1s"},
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

// The suite tested: each broken backend must fail the test that is there for it, and the correct one must pass it.
#include <gtest/gtest.h>

#include <chrono>
#include <ostream>
#include <string>

#include "mutants/run_program.hpp"

namespace dlock::conformance {
namespace {

struct Expectation {
  std::string mutation;
  std::string test;
  std::string suite = "Contract";
};

Finished run(const std::string& mutation, const Expectation& expected) {
  const std::string option = expected.suite == "Contract" ? "--mutation=" : "--sharing-mutation=";
  return run_program({DLOCK_MUTANT_PROGRAM, option + mutation,
                      "--gtest_filter=" + expected.suite + "." + expected.test + "/*", "--gtest_color=no"},
                     std::chrono::milliseconds(1500));
}

void PrintTo(const Expectation& expectation, std::ostream* out) {
  *out << expectation.mutation;
}

class Mutant : public ::testing::TestWithParam<Expectation> {};

TEST_P(Mutant, FailsTheTestThatIsThereForIt) {
  const Finished broken = run(GetParam().mutation, GetParam());
  EXPECT_EQ(broken.status, 1) << broken.output;
  EXPECT_NE(broken.output.find("[  FAILED  ] " + GetParam().suite + "." + GetParam().test + "/mutant"),
            std::string::npos)
      << broken.output;
}

TEST_P(Mutant, WouldPassItIfItWereCorrect) {
  const Finished correct = run("none", GetParam());
  EXPECT_EQ(correct.status, 0) << correct.output;
  EXPECT_NE(correct.output.find("[       OK ] " + GetParam().suite + "." + GetParam().test + "/mutant"),
            std::string::npos)
      << correct.output;
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
                      Expectation{"permit_of_another", "C05_APermitThatIsLostFreesNothing", "PermitContract"},
                      Expectation{"some_kept", "C06_SeveralLocksOfWhichOneIsHeldLeaveNothing"}),
    [](const ::testing::TestParamInfo<Expectation>& each) { return each.param.mutation; });

}  // namespace
}  // namespace dlock::conformance

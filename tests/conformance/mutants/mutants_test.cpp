// The suite tested: each broken backend must fail the test that is there for it, and the correct one must pass it.
#include <gtest/gtest.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <ostream>
#include <string>
#include <system_error>
#include <vector>

namespace {

struct Finished {
  int status = -1;
  std::string output;
};

// Runs the program to its end; a hang of what it tests ends after a short guard.
Finished run(const std::string& mutation, const std::string& test) {
  std::array<int, 2> ends{};
  if (pipe(ends.data()) != 0) throw std::system_error(errno, std::generic_category(), "pipe");
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  posix_spawn_file_actions_addclose(&actions, ends[0]);
  posix_spawn_file_actions_addclose(&actions, ends[1]);
  std::vector<std::string> arguments{DLOCK_MUTANT_PROGRAM, "--mutation=" + mutation, "--gtest_filter=*." + test + "/*",
                                     "--gtest_color=no"};
  std::vector<char*> argv;
  for (std::string& each : arguments) argv.push_back(each.data());
  argv.push_back(nullptr);
  std::string guard = "DLOCK_CONFORMANCE_GUARD_MS=1500";
  std::vector<char*> environment{guard.data(), nullptr};
  pid_t pid = -1;
  const int error = posix_spawn(&pid, DLOCK_MUTANT_PROGRAM, &actions, nullptr, argv.data(), environment.data());
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  if (error != 0) throw std::system_error(error, std::generic_category(), DLOCK_MUTANT_PROGRAM);
  Finished result;
  std::array<char, 4096> buffer{};
  for (ssize_t got = 0; (got = read(ends[0], buffer.data(), buffer.size())) != 0;) {
    if (got > 0) result.output.append(buffer.data(), static_cast<std::size_t>(got));
  }
  close(ends[0]);
  int status = 0;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFEXITED(status)) result.status = WEXITSTATUS(status);
  return result;
}

struct Expectation {
  std::string mutation;
  std::string test;
};

void PrintTo(const Expectation& expectation, std::ostream* out) {
  *out << expectation.mutation;
}

class Mutant : public ::testing::TestWithParam<Expectation> {};

TEST_P(Mutant, FailsTheTestThatIsThereForIt) {
  const Finished broken = run(GetParam().mutation, GetParam().test);
  EXPECT_EQ(broken.status, 1) << broken.output;
  EXPECT_NE(broken.output.find("[  FAILED  ] Contract." + GetParam().test + "/mutant"), std::string::npos)
      << broken.output;
}

TEST_P(Mutant, WouldPassItIfItWereCorrect) {
  const Finished correct = run("none", GetParam().test);
  EXPECT_EQ(correct.status, 0) << correct.output;
  EXPECT_NE(correct.output.find("[       OK ] Contract." + GetParam().test + "/mutant"), std::string::npos)
      << correct.output;
}

INSTANTIATE_TEST_SUITE_P(
    , Mutant,
    ::testing::Values(Expectation{"blind_release", "C05_StaleReleaseNeverFreesTheNextHolder"},
                      Expectation{"renewal_revives", "C10_RenewalNeverTakesAKilledHoldBack"},
                      Expectation{"renewal_lies", "C03_AKilledHoldIsSignalled"},
                      Expectation{"token_repeats", "C04_TokensGrowOverAThousandLeases"},
                      Expectation{"late_loss", "C03_TheEndOfALeaseIsSignalledInTimeForTheNextHolder"},
                      Expectation{"residue_on_give_up", "C06_AWaiterThatTimedOutLeavesNothing"},
                      Expectation{"lost_wake_up", "C11_AWaiterIsWokenByARelease"},
                      Expectation{"early_expiry", "C01_ALeaseThatRanOutIsNotHeldWhenTheNextHolderEnters"},
                      Expectation{"two_holders", "C01_AHundredThreadsCountWithoutLosingOne"},
                      Expectation{"folded_case", "C14_LookAlikesAreDifferentLocks"},
                      Expectation{"decoded_name", "C14_LookAlikesAreDifferentLocks"},
                      Expectation{"busy_is_error", "C09_BusyIsNotAnError"},
                      Expectation{"failure_is_busy", "C09_AServiceThatIsCutOffIsAnErrorNotBusy"},
                      Expectation{"last_comes_first", "C12_WaitersOfAClientAreServedInOrderWhereFair"},
                      Expectation{"release_lies", "C13_AReleaseOfAKilledHoldSaysNo"},
                      Expectation{"release_waits_for_lease", "C13_AReleaseFreesTheLockAtOnce"},
                      Expectation{"forgotten_clean_up", "C06_AWaiterCancelledWhileUnreachableLeavesNothing"}),
    [](const ::testing::TestParamInfo<Expectation>& each) { return each.param.mutation; });

}  // namespace

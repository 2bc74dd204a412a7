// One lock, several dlock commands: who runs, who waits, who gives up.
#include <chrono>
#include <list>
#include <stdexcept>

#include <dlock/clock.hpp>

#include "support/cli_test.hpp"

namespace dlock::cli::test {
namespace {

class Exclusion : public CliTest {};

TEST_F(Exclusion, OfManyCommandsThatTryAtOnceExactlyOneRuns) {
  std::list<Process> contenders;
  for (int i = 0; i < 8; ++i) contenders.emplace_back(run_probe({"wait"}, {"--try"}));
  // The winner's command goes on until its input ends; the others end by themselves.
  int winners = 0;
  std::list<Process> running;
  for (Process& contender : contenders) {
    std::string first;
    try {
      first = contender.line();
    } catch (const std::runtime_error&) {
      EXPECT_EQ(contender.wait(), 75);
      continue;
    }
    EXPECT_THAT(first, testing::StartsWith("ready"));
    ++winners;
    running.push_back(std::move(contender));
  }
  EXPECT_EQ(winners, 1);
  for (Process& winner : running) EXPECT_EQ(winner.finish().status, 0);
}

TEST_F(Exclusion, AWaitingCommandRunsWhenTheHolderEnds) {
  Process holder(run_probe({"wait"}));
  (void)holder.line();
  Process waiter(run_probe({"environment", "DLOCK_NAME"}));
  holder.close_input();
  EXPECT_EQ(holder.wait(), 0);
  const Finished waited = waiter.finish();
  EXPECT_EQ(waited.status, 0);
  EXPECT_EQ(waited.out, "job\n");
}

// In a log as at a terminal.
TEST_F(Exclusion, AWaitThatTakesLongSaysForWhomAndForHowLong) {
  Process holder(run_probe({"wait"}));
  (void)holder.line();
  Process waiter(run_probe({"environment", "DLOCK_NAME"}));
  EXPECT_THAT(waiter.error_line(),
              testing::MatchesRegex("dlock: waiting for \"job\", held by .+:probe \\(for .+ s\\)"));
  holder.close_input();
  EXPECT_EQ(waiter.line(), "job");
  const Finished waited = waiter.finish();
  EXPECT_THAT(waited.err, testing::MatchesRegex("dlock: holds \"job\" after waiting for .+ s\n"));
  EXPECT_EQ(waited.status, 0);
}

TEST_F(Exclusion, AQuietWaitSaysNothing) {
  Process holder(run_probe({"wait"}));
  (void)holder.line();
  Process loud(run_probe({"environment", "DLOCK_NAME"}));
  Process quiet(run_probe({"environment", "DLOCK_NAME"}, {"--quiet"}));
  (void)loud.error_line();
  Process later(run_probe({"environment", "DLOCK_NAME"}));
  (void)later.error_line();  // a second after the quiet one has begun
  holder.close_input();
  EXPECT_EQ(quiet.line(), "job");
  const Finished waited = quiet.finish();
  EXPECT_EQ(waited.err, "");
  EXPECT_EQ(waited.status, 0);
}

TEST_F(Exclusion, TheStatusOfABusyLockMayBeChosen) {
  Process holder(run_probe({"wait"}));
  (void)holder.line();
  EXPECT_EQ(run(run_probe({"environment", "X"}, {"--try", "--conflict-exit-code", "0"})).status, 0);
  EXPECT_EQ(run(run_probe({"environment", "X"}, {"--wait", "10ms", "--conflict-exit-code", "9"})).status, 9);
  EXPECT_EQ(run(run_probe({"environment", "X"}, {"--try", "--conflict-exit-code", "256"})).status, 64);
}

TEST_F(Exclusion, TheTokenGrowsFromRunToRun) {
  const auto token = [this] { return std::stoull(run(run_probe({"environment", "DLOCK_TOKEN"})).out); };
  const auto first = token();
  EXPECT_LT(first, token());
}

TEST_F(Exclusion, TryExitsWith75WhenSomebodyElseHolds) {
  Process holder(run_probe({"wait"}));
  (void)holder.line();
  const Finished tried = run(run_probe({"environment", "X"}, {"--try"}));
  EXPECT_EQ(tried.status, 75);
  EXPECT_EQ(tried.out, "") << "the command must not have run";
  EXPECT_EQ(tried.err, "dlock: another client holds \"job\"\n");
}

TEST_F(Exclusion, AWaitOfZeroIsATry) {
  Process holder(run_probe({"wait"}));
  (void)holder.line();
  EXPECT_EQ(run(run_probe({"wait"}, {"--wait", "0"})).status, 75);
}

TEST_F(Exclusion, AWaitThatRunsOutExitsWith76) {
  Process holder(run_probe({"wait"}));
  (void)holder.line();
  const Finished waited = run(run_probe({"environment", "X"}, {"--wait", "20ms"}));
  EXPECT_EQ(waited.status, 76);
  EXPECT_EQ(waited.out, "") << "the command must not have run";
}

TEST_F(Exclusion, QuietSaysNothingAboutALockHeldByOthers) {
  Process holder(run_probe({"wait"}));
  (void)holder.line();
  EXPECT_EQ(run(run_probe({"wait"}, {"--try", "--quiet"})).err, "");
  EXPECT_EQ(run(run_probe({"wait"}, {"--wait", "10ms", "-q"})).err, "");
}

TEST_F(Exclusion, DifferentNamesDoNotExcludeEachOther) {
  Process holder(run_probe({"wait"}));
  (void)holder.line();
  EXPECT_EQ(run(dlock("run", {"--try", "other", "--", "true"})).status, 0);
}

TEST_F(Exclusion, HoldAtLeastKeepsTheLockAfterTheCommandHasEnded) {
  Process holder(run_probe({"environment", "DLOCK_NAME"}, {"--hold-at-least", "1h"}));
  EXPECT_EQ(holder.line(), "job");
  EXPECT_EQ(run(run_probe({"wait"}, {"--try"})).status, 75);
  holder.signal(SIGTERM);
  EXPECT_EQ(holder.wait(), 0) << "the command had ended with 0, and that stands";
  EXPECT_TRUE(lock_is_free());
}

TEST_F(Exclusion, HoldAtLeastCountsFromTheBeginning) {
  const auto start = LeaseClock::now();
  const Finished held = run(dlock("run", {"--hold-at-least", "150ms", "job", "--", "sh", "-c", "exit 3"}));
  EXPECT_GE(LeaseClock::now() - start, std::chrono::milliseconds(150));
  EXPECT_EQ(held.status, 3);
}

TEST_F(Exclusion, HoldAtLeastDoesNotKeepTheLockOfACommandThatCannotBeRun) {
  EXPECT_EQ(run(dlock("run", {"--hold-at-least", "1h", "job", "--", "/no/such/command"})).status, 127);
  EXPECT_TRUE(lock_is_free());
}

}  // namespace
}  // namespace dlock::cli::test

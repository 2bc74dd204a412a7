// Signals sent to dlock.
#include <csignal>

#include "support/cli_test.hpp"

namespace dlock::cli::test {
namespace {

class ForwardedSignal : public CliTest, public testing::WithParamInterface<int> {};

TEST_P(ForwardedSignal, Sent_ReachesTheCommand) {
  Process run(run_probe({"listen"}));
  (void)run.line();
  run.signal(GetParam());
  EXPECT_EQ(run.line(), std::to_string(GetParam()));
  EXPECT_EQ(run.wait(), 33);
  EXPECT_TRUE(lock_is_free());
}

TEST_P(ForwardedSignal, IgnoredAtTheStart_ReachesTheCommand) {
  Process run(run_probe({"listen"}), {.ignored = {GetParam()}});
  (void)run.line();
  run.signal(GetParam());
  EXPECT_EQ(run.line(), std::to_string(GetParam()));
  EXPECT_EQ(run.wait(), 33);
}

TEST_P(ForwardedSignal, EndingTheCommand_IsTheExitStatus) {
  Process run(dlock("run", {"job", "--", "sh", "-c", "echo ready; read never"}));
  EXPECT_EQ(run.line(), "ready");
  run.signal(GetParam());
  EXPECT_EQ(run.wait(), 128 + GetParam());
}

TEST_P(ForwardedSignal, Sent_ReachesTheWholeGroup) {
  Process run(dlock("run", {"job", "--", "sh", "-c",
                            "trap '' INT TERM HUP QUIT USR1 USR2; (trap - INT TERM HUP QUIT "
                            "USR1 USR2; exec \"$0\" listen) & wait; echo end",
                            probe_path()}));
  (void)run.line();
  run.signal(GetParam());
  // A shell keeps a signal ignored that was ignored when it started, so the grandchild only gets what it listens for.
  EXPECT_EQ(run.line(), std::to_string(GetParam()));
  EXPECT_EQ(run.line(), "end");
  EXPECT_EQ(run.wait(), 0);
}

INSTANTIATE_TEST_SUITE_P(Each, ForwardedSignal, testing::Values(SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2),
                         [](const auto& parameter) { return std::string(::sigabbrev_np(parameter.param)); });

class EndingSignal : public CliTest, public testing::WithParamInterface<int> {};

// The signals are blocked when dlock starts, so that they are pending before it can listen: as early as can be.
TEST_P(EndingSignal, WaitForTheLock_Ends) {
  Process holder(run_probe({"wait"}));
  (void)holder.line();
  Process waiter(run_probe({"environment", "X"}), {.blocked = {GetParam()}});
  waiter.signal(GetParam());
  const Finished waited = waiter.finish();
  EXPECT_EQ(waited.status, 128 + GetParam());
  EXPECT_EQ(waited.out, "") << "the command must not have run";
}

TEST_P(EndingSignal, WaitOfHold_Ends) {
  Process holder(run_probe({"wait"}));
  (void)holder.line();
  Process waiter(dlock("hold", {"job"}), {.blocked = {GetParam()}});
  waiter.signal(GetParam());
  EXPECT_EQ(waiter.finish().status, 128 + GetParam());
}

TEST_P(EndingSignal, IgnoredByTheCaller_DoesNotEndTheWait) {
  Process holder(run_probe({"wait"}));
  (void)holder.line();
  Process waiter(run_probe({"environment", "DLOCK_NAME"}), {.ignored = {GetParam()}, .blocked = {GetParam()}});
  waiter.signal(GetParam());
  holder.close_input();
  EXPECT_EQ(waiter.finish().out, "job\n");
}

INSTANTIATE_TEST_SUITE_P(Each, EndingSignal, testing::Values(SIGINT, SIGTERM, SIGHUP, SIGQUIT),
                         [](const auto& parameter) { return std::string(::sigabbrev_np(parameter.param)); });

class Signals : public CliTest {};

TEST_F(Signals, UserSignalDuringTheWait_ReachesTheCommand) {
  Process holder(run_probe({"wait"}));
  (void)holder.line();
  Process waiter(run_probe({"listen"}), {.blocked = {SIGUSR1}});
  waiter.signal(SIGUSR1);
  holder.close_input();
  (void)waiter.line();
  EXPECT_EQ(waiter.line(), std::to_string(SIGUSR1));
  EXPECT_EQ(waiter.wait(), 33);
}

TEST_F(Signals, MaskAndDispositions_AreInherited) {
  const auto numbers = [](std::vector<int> signals) {
    std::string text;
    for (const int signal : signals) text += " " + std::to_string(signal);
    return text;
  };
  EXPECT_EQ(run(run_probe({"signals"})).out, "blocked\nignored\n");
  EXPECT_EQ(
      run(run_probe({"signals"}), {.ignored = {SIGHUP, SIGPIPE, SIGCHLD, SIGXFSZ}, .blocked = {SIGUSR2, SIGTSTP}}).out,
      "blocked" + numbers({SIGUSR2, SIGTSTP}) + "\nignored" + numbers({SIGHUP, SIGPIPE, SIGCHLD, SIGXFSZ}) + "\n");
}

TEST_F(Signals, StoppedCommand_IsContinuedThroughDlock) {
  Process run(run_probe({"listen"}));
  const pid_t command = pids_in(run.line()).at(0);
  ASSERT_EQ(::kill(command, SIGSTOP), 0);
  run.signal(SIGUSR1);
  run.signal(SIGCONT);
  EXPECT_EQ(run.line(), std::to_string(SIGUSR1));
  EXPECT_EQ(run.wait(), 33);
}

}  // namespace
}  // namespace dlock::cli::test

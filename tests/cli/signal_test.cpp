// Signals sent to dlock, and what else the command inherits.
#include <csignal>

#include "support/cli_test.hpp"

namespace dlock::cli::test {
namespace {

class ForwardedSignal : public CliTest, public testing::WithParamInterface<int> {};

TEST_P(ForwardedSignal, Sent_ReachesTheCommand) {
  for (const bool ignored : {false, true}) {
    Process run(run_probe({"listen"}), {.ignored = ignored ? std::vector<int>{GetParam()} : std::vector<int>{}});
    (void)run.line();
    run.signal(GetParam());
    EXPECT_EQ(run.line(), std::to_string(GetParam())) << ignored;
    EXPECT_EQ(run.wait(), 33) << ignored;
    EXPECT_TRUE(lock_is_free());
  }
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
  for (const auto& command : {run_probe({"environment", "X"}), dlock("hold", {"job"})}) {
    Process waiter(command, {.blocked = {GetParam()}});
    waiter.signal(GetParam());
    const Finished waited = waiter.finish();
    EXPECT_EQ(waited.status, 128 + GetParam());
    EXPECT_EQ(waited.out, "") << "the command must not have run";
  }
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

// --- A service manager names a process, and the command serves for dlock; see also inheritance.transcript ---

class Inheritance : public CliTest {};

// A service manager says by its number which process it started, and libraries do nothing in any other one.
TEST_F(Inheritance, ServiceManagersNumbers_BecomeTheCommands) {
  const std::string numbers = R"(
import os, sys
def numbers():
    fd = os.pidfd_open(os.getpid())
    own = dict.fromkeys(["LISTEN_PID", "WATCHDOG_PID", "SYSTEMD_EXEC_PID"], str(os.getpid()))
    own["LISTEN_PIDFDID"] = str(os.fstat(fd).st_ino)
    os.close(fd)
    return own
)";
  const std::string start = numbers +
                            "os.environ.update(numbers(), **dict(each.split('=') for each in sys.argv[1].split()))\n"
                            "os.execv(sys.argv[2], sys.argv[2:])\n";
  const std::string compare = numbers +
                              "print(*[name for name in sorted(numbers()) if os.environ[name] != "
                              "numbers()[name]])\n";
  for (const std::string verb : {"run", "elect"}) {
    for (const std::string others : {"", "WATCHDOG_PID=1 LISTEN_PIDFDID=1", "LISTEN_PID=01"}) {
      std::vector<std::string> command{"python3", "-c", start, others};
      std::vector<std::string> words = dlock(verb, {"job", "--", "python3", "-c", compare});
      if (verb == "elect") words.insert(words.begin() + 2, "--once");
      command.insert(command.end(), words.begin(), words.end());
      const Finished result = run(command);
      const std::string unchanged = others.empty()              ? "\n"
                                    : others == "LISTEN_PID=01" ? "LISTEN_PID\n"
                                                                : "LISTEN_PIDFDID WATCHDOG_PID\n";
      EXPECT_EQ(result.out, unchanged) << verb << " " << others << result.err;
    }
  }
}

TEST_F(Inheritance, SocketOfSystemd_IsServedByTheCommand) {
  const std::string path = scratch().path() + "/socket";
  const std::string serve = R"(
import os, socket
assert os.environ["LISTEN_FDS"] == "1" and os.environ["LISTEN_PID"] == str(os.getpid())
socket.socket(fileno=3).accept()[0].sendall(b"served\n")
)";
  std::vector<std::string> command{"systemd-socket-activate", "-l", path};
  for (const std::string& word : dlock("run", {"job", "--", "python3", "-c", serve})) command.push_back(word);
  Process manager(command);
  EXPECT_THAT(manager.error_line(), testing::HasSubstr("Listening on"));
  const Finished client = run({"python3", "-c",
                               "import socket, sys\nclient = socket.socket(socket.AF_UNIX)\n"
                               "client.connect(sys.argv[1])\nprint(client.makefile().read(), end='')\n",
                               path});
  EXPECT_EQ(client.out, "served\n") << client.err;
  EXPECT_EQ(manager.finish().status, 0);
}

}  // namespace
}  // namespace dlock::cli::test

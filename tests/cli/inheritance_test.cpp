// What the command gets from dlock's caller, and what it must not get from dlock.
#include <fcntl.h>

#include "support/cli_test.hpp"

namespace dlock::cli::test {
namespace {

class Inheritance : public CliTest {};

TEST_F(Inheritance, NoDescriptorOfDlockReachesTheCommand) {
  EXPECT_EQ(run(run_probe({"descriptors"})).out, "0 1 2 \n");
}

TEST_F(Inheritance, DescriptorsOfTheCallerReachTheCommand) {
  const UniqueFd low(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  const UniqueFd high(::fcntl(low.get(), F_DUPFD_CLOEXEC, 200));
  const Finished result = run(run_probe({"descriptors"}), {.passed = {high.get()}});
  EXPECT_EQ(result.out, "0 1 2 " + std::to_string(high.get()) + " \n");
}

TEST_F(Inheritance, StandardInputIsPassedThrough) {
  Process run(run_probe({"input"}));
  run.write("one\ntwo\n");
  const Finished result = run.finish();
  EXPECT_EQ(result.out, "one\ntwo\n");
  EXPECT_EQ(result.status, 0);
}

TEST_F(Inheritance, AClosedStandardInputIsClosedForTheCommandToo) {
  EXPECT_EQ(run(run_probe({"input"}), {.closed_input = true}).out, "(closed)\n");
  EXPECT_EQ(run(run_probe({"descriptors"}), {.closed_input = true}).out, "1 2 \n");
}

TEST_F(Inheritance, StandardErrorThatIsClosedDoesNotEndUpInTheLockFile) {
  const std::string command = dlock_path() + " run --url " + url() + " job -- /no/such/command";
  EXPECT_EQ(run({"sh", "-c", command + " 2>&-; echo $?"}).out, "127\n");
  EXPECT_TRUE(lock_is_free());
}

TEST_F(Inheritance, TheEnvironmentIsPassedThroughWithNameTokenAndUrl) {
  const Process::Options options{.environment = {{"COLOUR_OF_TODAY", "blue"}, {"DLOCK_NAME", "of an outer lock"}}};
  EXPECT_EQ(run(run_probe({"environment", "COLOUR_OF_TODAY"}), options).out, "blue\n");
  EXPECT_EQ(run(run_probe({"environment", "DLOCK_NAME"}), options).out, "job\n");
  EXPECT_EQ(run(run_probe({"environment", "DLOCK_URL"}), options).out, url() + "\n");
  EXPECT_GT(std::stoull(run(run_probe({"environment", "DLOCK_TOKEN"}), options).out), 0U);
}

// A service manager says by its number which process it started, and libraries do nothing in any other one.
TEST_F(Inheritance, AServiceManagersNumbersOfDlockBecomeThoseOfTheCommand) {
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

TEST_F(Inheritance, TheCommandServesTheSocketThatSystemdListensOn) {
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

TEST_F(Inheritance, ArgumentsReachTheCommandByteForByte) {
  EXPECT_EQ(run(run_probe({"arguments", "", "a b", "-x", "--url", "--", "--help", "\xff\xfe", "*?$(x);'\""})).out,
            "\na b\n-x\n--url\n--\n--help\n\\xFF\\xFE\n*?$(x);'\"\n");
}

TEST_F(Inheritance, TheCommandLeadsAProcessGroupOfItsOwn) {
  Process run(run_probe({"listen"}));
  const pid_t command = pids_in(run.line()).at(0);
  EXPECT_EQ(::getpgid(command), command);
  EXPECT_EQ(::getsid(command), ::getsid(0));
  run.signal(SIGTERM);
  EXPECT_EQ(run.wait(), 33);
}

TEST_F(Inheritance, TheHolderIsShownUnderTheCommandsName) {
  Process run(run_probe({"wait"}));
  (void)run.line();
  EXPECT_THAT(
      test::run(dlock("status", {"job"})).out,
      testing::HasSubstr(":" + std::to_string(run.pid()) + ":" + probe_path().substr(probe_path().rfind('/') + 1)));
}

}  // namespace
}  // namespace dlock::cli::test

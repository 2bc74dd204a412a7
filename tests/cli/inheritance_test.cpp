// The command serves for dlock where a service manager names a process; see also inheritance.transcript.
#include "support/cli_test.hpp"

namespace dlock::cli::test {
namespace {

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

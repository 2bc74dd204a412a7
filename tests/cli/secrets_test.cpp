// A password that dlock was given is used, and nobody gets to see it: not in what dlock prints, not in the process
// list, not in the environment of the command.
#include <fstream>
#include <iterator>

#include "support/cli_test.hpp"
#include "tests/support/redis_server.hpp"

namespace dlock::cli::test {
namespace {

using dlock::test::RedisServer;
using dlock::test::RedisUser;

// "cmdline" or "environ" of a process, zero bytes and all.
std::string file_of(pid_t pid, const std::string& name) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/" + name, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

class Secrets : public testing::Test {
 protected:
  static std::vector<std::string> probe(const std::vector<std::string>& options,
                                        const std::vector<std::string>& words) {
    std::vector<std::string> command{dlock_path(), "run"};
    command.insert(command.end(), options.begin(), options.end());
    command.insert(command.end(), {"job", "--", probe_path()});
    command.insert(command.end(), words.begin(), words.end());
    return command;
  }
  void expect_hidden(const Finished& finished) const {
    EXPECT_EQ((finished.out + finished.err).find(secret), std::string::npos) << finished.out << finished.err;
  }

  const std::string secret = "locker-secret";
  const RedisServer server{{.password = "top", .user = RedisUser{.password = secret}}};
  const std::string url = server.url();
};

TEST_F(Secrets, ThePasswordIsNotInTheProcessList) {
  ASSERT_NE(url.find(secret), std::string::npos);
  for (const auto& options : std::vector<std::vector<std::string>>{{"--url", url}, {"--url=" + url}}) {
    Process run(probe(options, {"wait"}));
    (void)run.line();
    const std::string command_line = file_of(run.pid(), "cmdline");
    EXPECT_NE(command_line.find("redis://locker:***@127.0.0.1"), std::string::npos) << command_line;
    EXPECT_EQ(command_line.find(secret), std::string::npos);
    const auto children = children_of(run.pid());
    EXPECT_EQ(children.size(), 2U) << "the guardian and the command";
    for (const auto& [pid, name] : children) {
      EXPECT_FALSE(file_of(pid, "cmdline").empty()) << name;
      EXPECT_EQ(file_of(pid, "cmdline").find(secret), std::string::npos) << name;
      EXPECT_EQ(file_of(pid, "environ").find(secret), std::string::npos) << name;
    }
    expect_hidden(run.finish());
  }
}

TEST_F(Secrets, ThePasswordDoesNotReachTheCommand) {
  const std::string harmless = "redis://locker@127.0.0.1:" + std::to_string(server.port());
  const std::vector<std::string> words = {"environment", "DLOCK_URL"};
  EXPECT_EQ(run(probe({"--url", url}, words)).out, harmless + "\n");
  EXPECT_EQ(run(probe({}, words), {.environment = {{"DLOCK_URL", url}}}).out, harmless + "\n");
}

TEST_F(Secrets, ThePasswordIsNeverPrinted) {
  const std::vector<std::vector<std::string>> commands = {
      {"status", "job"},         {"status", "--json", "job"},
      {"list", "--json"},        {"doctor"},
      {"doctor", "--json"},      {"init"},
      {"break", "--yes", "job"}, {"run", "--verbose", "--json", "/dev/stderr", "job", "--", "true"}};
  for (const auto& words : commands) {
    std::vector<std::string> command{dlock_path()};
    command.insert(command.end(), words.begin(), words.end());
    const Finished finished = run(command, {.environment = {{"DLOCK_URL", url}}});
    EXPECT_FALSE((finished.out + finished.err).empty()) << words.front();
    expect_hidden(finished);
  }
}

TEST_F(Secrets, APasswordThatIsWrongIsNotPrintedEither) {
  std::string wrong = url;
  wrong.insert(wrong.find(secret), "un");
  const Finished finished =
      run({dlock_path(), "run", "--url", wrong, "--try", "--verbose", "--json", "/dev/stderr", "job", "--", "true"});
  EXPECT_EQ(finished.status, 77);
  expect_hidden(finished);
}

}  // namespace
}  // namespace dlock::cli::test

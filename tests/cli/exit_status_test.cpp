// What dlock run exits with, and that the lock is free afterwards.
#include <csignal>
#include <filesystem>
#include <fstream>

#include "support/cli_test.hpp"

namespace dlock::cli::test {
namespace {

class ExitStatus : public CliTest {
 protected:
  Finished run_shell(const std::string& script) { return run(dlock("run", {"job", "--", "sh", "-c", script})); }
  std::string file_with(const std::string& text, std::filesystem::perms permissions) {
    std::string path = scratch_.path() + "/file";
    std::ofstream(path) << text;
    std::filesystem::permissions(path, permissions);
    return path;
  }

 private:
  ScratchDirectory scratch_;
};

TEST_F(ExitStatus, IsTheCommandsOwn) {
  EXPECT_EQ(run_shell("exit 0").status, 0);
  EXPECT_EQ(run_shell("exit 1").status, 1);
  EXPECT_EQ(run_shell("exit 255").status, 255);
  EXPECT_TRUE(lock_is_free());
}

TEST_F(ExitStatus, IsThatOfASignalWhenOneEndedTheCommand) {
  EXPECT_EQ(run_shell("kill -KILL $$").status, 128 + SIGKILL);
  EXPECT_EQ(run_shell("kill -SEGV $$").status, 128 + SIGSEGV);
  EXPECT_TRUE(lock_is_free());
}

TEST_F(ExitStatus, Is127ForACommandThatIsNotThere) {
  const Finished missing = run(dlock("run", {"job", "--", "no-such-command-anywhere"}));
  EXPECT_EQ(missing.status, 127);
  EXPECT_EQ(missing.err, "dlock: cannot run \"no-such-command-anywhere\": No such file or directory\n");
  EXPECT_EQ(run(dlock("run", {"job", "--", "/no/such/path"})).status, 127);
  EXPECT_EQ(run(dlock("run", {"job", "--", ""})).status, 127);
  EXPECT_TRUE(lock_is_free());
}

TEST_F(ExitStatus, Is126ForACommandThatCannotBeExecuted) {
  using std::filesystem::perms;
  EXPECT_EQ(run(dlock("run", {"job", "--", file_with("data", perms::owner_read)})).status, 126);
  EXPECT_EQ(run(dlock("run", {"job", "--", scratch().path()})).status, 126);
  EXPECT_TRUE(lock_is_free());
}

TEST_F(ExitStatus, AScriptWithoutInterpreterLineRunsInTheShellAsInShells) {
  using std::filesystem::perms;
  EXPECT_EQ(run(dlock("run", {"job", "--", file_with("exit 9\n", perms::owner_all)})).status, 9);
}

TEST_F(ExitStatus, Is126WhenTheEnvironmentIsTooBigForTheCommand) {
  // The command gets the lock's name twice, dlock once, so there is a size of arguments that dlock can just be started
  // with and the command cannot.
  const Process::Options options{.environment = {{"DLOCK_URL", url()}}, .stack_limit = 1 << 20};
  std::vector<std::string> command{dlock_path(), "run", std::string(500, 'n'), "--", "true"};
  command.resize(command.size() + 1400, std::string(200, 'x'));
  Finished result = run(command, options);
  while (result.status == 125 && command.size() > 6) {  // 125: dlock itself could not be started
    command.pop_back();
    result = run(command, options);
  }
  EXPECT_EQ(result.status, 126);
  EXPECT_EQ(result.err, "dlock: cannot run \"true\": Argument list too long\n");
}

TEST_F(ExitStatus, Is69WhenTheServiceCannotBeReachedAndTheCommandDoesNotRun) {
  const Finished result =
      run({dlock_path(), "run", "--url", "file:///proc/no-place-for-locks", "job", "--", "echo", "ran"});
  EXPECT_EQ(result.status, 69);
  EXPECT_EQ(result.out, "");
  EXPECT_THAT(result.err, testing::StartsWith("dlock: "));
}

TEST_F(ExitStatus, SaysWhyWhenDescriptorsRunOutAndTheCommandDoesNotRun) {
  const std::string command = dlock_path() + " run --wait 50ms --url " + url() + " job -- echo ran";
  // However many are left, dlock either runs the command or says why not; never anything between.
  for (int limit = 3; limit < 30; ++limit) {
    const Finished result = run({"sh", "-c", "ulimit -n " + std::to_string(limit) + "; exec " + command});
    if (result.status == 0) {
      EXPECT_EQ(result.out, "ran\n");
    } else {
      EXPECT_THAT(result.status, testing::AnyOf(69, 71, 127)) << limit << result.err;  // 127: not even exec works
      EXPECT_EQ(result.out, "");
      EXPECT_NE(result.err, "");
    }
  }
  EXPECT_TRUE(lock_is_free());
}

TEST_F(ExitStatus, IsNoSignalWhenFilesMayNotGrow) {
  const std::string run_job = " run --url ";
  const auto at = [this](const std::string& file) { return scratch().path() + "/" + file; };
  struct Case {
    std::string words;
    int status;
    std::string file;  // that the message names
  };
  const std::vector<Case> cases{
      {run_job + url() + " job -- echo ran", 77, at("job.lock")},
#ifdef DLOCK_TEST_WITH_MEMORY
      {run_job + "memory://x --quiet --json " + at("json") + " job -- true", 0, at("json")},
      {run_job + "memory://x --quiet --metrics " + at("metrics") + " job -- true", 0, at("metrics")},
#endif
      {" backends >" + at("out"), 74, "standard output"},
  };
  for (const Case& each : cases) {
    const Finished result = run({"sh", "-c", "ulimit -f 0; " + dlock_path() + each.words});
    EXPECT_EQ(result.status, each.status) << each.words;
    EXPECT_EQ(result.out, "");
    EXPECT_THAT(result.err, testing::HasSubstr("cannot write " + each.file + ": File too large")) << each.words;
  }
  EXPECT_TRUE(lock_is_free());
}

TEST_F(ExitStatus, Is74WhenStandardOutputCannotBeWritten) {
  EXPECT_EQ(run({"sh", "-c", dlock_path() + " backends >/dev/full"}).status, 74);
  EXPECT_EQ(run({"sh", "-c", dlock_path() + " hold --url " + url() + " job >/dev/full"}).status, 74);
  EXPECT_TRUE(lock_is_free());
}

}  // namespace
}  // namespace dlock::cli::test

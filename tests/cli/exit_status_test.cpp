// The status of dlock run where the system refuses something.
#include "support/cli_test.hpp"

namespace dlock::cli::test {
namespace {

class ExitStatus : public CliTest {};

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

}  // namespace
}  // namespace dlock::cli::test

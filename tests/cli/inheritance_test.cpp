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

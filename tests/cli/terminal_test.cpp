// dlock run as the foreground job of a terminal.
#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "support/cli_test.hpp"
#include "support/job_shell.hpp"

namespace dlock::cli::test {
namespace {

constexpr const char* control_c = "\x03";
constexpr const char* control_z = "\x1a";

class OnATerminal : public CliTest {};

TEST_F(OnATerminal, Command_IsInTheForeground) {
  JobShell shell(run_probe({"terminal"}));
  EXPECT_EQ(shell.line(), "foreground");
}

TEST_F(OnATerminal, ControlC_ReachesTheCommand) {
  for (const bool input_redirected : {false, true}) {
    JobShell shell(run_probe({"listen"}), input_redirected);
    (void)shell.line();
    shell.type(control_c);
    EXPECT_EQ(shell.line(), std::to_string(SIGINT));
    EXPECT_EQ(shell.job_news(), "exited 33");
  }
}

TEST_F(OnATerminal, TypedLine_ReachesTheCommand) {
  for (const bool opens_it_later : {false, true}) {
    const std::string from = opens_it_later ? " </dev/tty" : "";
    JobShell shell(dlock("run", {"job", "--", "sh", "-c", "read word" + from + "; echo \"got $word\""}),
                   opens_it_later);
    shell.type("hello\n");
    EXPECT_EQ(shell.line(), "got hello");
    EXPECT_EQ(shell.job_news(), "exited 0");
  }
}

TEST_F(OnATerminal, ControlZ_StopsTheJobUntilForeground) {
  for (const bool input_redirected : {false, true}) {
    JobShell shell(run_probe({"listen"}), input_redirected);
    (void)shell.line();
    shell.type(control_z);
    EXPECT_EQ(shell.job_news(), "stopped");
    EXPECT_FALSE(lock_is_free()) << "a stopped job keeps a lock that does not run out";
    shell.foreground();
    shell.type(control_c);
    EXPECT_EQ(shell.line(), std::to_string(SIGINT));
    EXPECT_EQ(shell.job_news(), "exited 33");
  }
}

TEST_F(OnATerminal, Wait_NamesTheHolderAndEndsAtControlC) {
  Process holder(run_probe({"wait"}));
  (void)holder.line();
  JobShell shell(run_probe({"wait"}));
  const std::string said = shell.line();
  const std::string status = run(dlock("status", {"job"})).out;
  const auto start = status.find("holder") + 8;
  const std::string by = status.substr(start, status.find('\n', start) - start);
  EXPECT_THAT(said, testing::StartsWith("dlock: waiting for \"job\", held by " + by + " (for "));
  shell.type(control_c);
  EXPECT_EQ(shell.job_news(), "exited 130");
}

TEST_F(OnATerminal, ControlZ_StopsAWaitUntilForeground) {
  Process holder(run_probe({"wait"}));
  (void)holder.line();
  JobShell shell(dlock("run", {"job", "--", "printenv", "DLOCK_NAME"}));
  EXPECT_THAT(shell.line(), testing::StartsWith("dlock: waiting for \"job\""));
  shell.type(control_z);
  EXPECT_EQ(shell.job_news(), "stopped");
  holder.close_input();
  shell.foreground();
  EXPECT_THAT(shell.line(), testing::StartsWith("dlock: holds \"job\" after waiting for "));
  EXPECT_EQ(shell.line(), "job");
  EXPECT_EQ(shell.job_news(), "exited 0");
}

TEST_F(OnATerminal, Output_IsColouredUnlessNoColor) {
  const std::string command = dlock_path() + " status --url " + url() + " job | cat; " + dlock_path() +
                              " status --url " + url() + " job; NO_COLOR=1 " + dlock_path() + " status --url " + url() +
                              " job";
  JobShell shell({"/usr/bin/env", "TERM=xterm", "sh", "-c", command});
  const auto state = [&shell] {
    (void)shell.line();
    return shell.line();
  };
  EXPECT_EQ(state(), "state  free");
  EXPECT_EQ(state(), "state  \x1b[32mfree\x1b[0m");
  EXPECT_EQ(state(), "state  free");
}

TEST_F(OnATerminal, BenchInterrupted_KeepsItsMeasurements) {
  const ScratchDirectory reports;
  const std::string page = reports.path() + "/report.html";
  const std::string figures = reports.path() + "/report.json";
  JobShell shell({dlock_path(), "bench", "--quick", "--html", page, "--json", figures, "--url", url(), "--scenario",
                  "latency", "--scenario", "contention"});
  shell.await("contention");
  shell.type(control_c);
  EXPECT_EQ(shell.job_news(), "exited 130");
  const auto contents = [](const std::string& path) {
    std::ifstream file(path);
    return std::string(std::istreambuf_iterator<char>(file), {});
  };
  EXPECT_THAT(contents(figures), testing::HasSubstr("\"complete\":false"));
  EXPECT_THAT(contents(figures), testing::HasSubstr("\"scenario\":\"latency\""));
  EXPECT_THAT(contents(page), testing::HasSubstr("</html>"));
  EXPECT_TRUE(std::filesystem::is_empty(scratch().path()));
}

}  // namespace
}  // namespace dlock::cli::test

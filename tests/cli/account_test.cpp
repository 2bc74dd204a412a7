// What an operator finds behind "dlock run --json" and --metrics.
#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <list>

#include <nlohmann/json.hpp>

#include "support/cli_test.hpp"

namespace dlock::cli::test {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;

class AccountTest : public CliTest {
 protected:
  [[nodiscard]] std::string path(const std::string& name) const { return files_.path() + "/" + name; }
  [[nodiscard]] std::string text(const std::string& name) const {
    std::ifstream file(path(name));
    return {std::istreambuf_iterator<char>(file), {}};
  }
  [[nodiscard]] json account() const { return json::parse(text("account")); }
  // dlock run --url URL --json FILE --metrics FILE WORDS...
  [[nodiscard]] std::vector<std::string> run_with_books(const std::vector<std::string>& words,
                                                        const std::string& verb = "run") const {
    std::vector<std::string> options{"--metrics", path("job.prom")};
    if (verb == "run") options.insert(options.end(), {"--json", path("account")});
    options.insert(options.end(), words.begin(), words.end());
    return dlock(verb, options);
  }
  // Of the lock "job".
  [[nodiscard]] std::string metric(const std::string& name) const {
    const std::string line = "dlock_" + name + "{name=\"job\",kind=\"lock\"} ";
    const std::string all = text("job.prom");
    const auto at = all.find(line);
    if (at == std::string::npos) return "none";
    return all.substr(at + line.size(), all.find('\n', at) - at - line.size());
  }
  [[nodiscard]] std::string result_in_metrics() const {
    for (const std::string result : {"ran", "conflict", "interrupted", "lost", "failed"}) {
      if (text("job.prom").find("{name=\"job\",kind=\"lock\",result=\"" + result + "\"} 1\n") != std::string::npos) {
        return result;
      }
    }
    return "none";
  }

 private:
  ScratchDirectory files_;
};

TEST_F(AccountTest, OfACommandIsOneLineOfJsonApartFromWhatTheCommandPrints) {
  const Finished result = run(run_with_books({"job", "--", "sh", "-c", "echo mine; exit 3"}));
  EXPECT_EQ(result.status, 3);
  EXPECT_EQ(result.out, "mine\n");
  EXPECT_EQ(result.err, "");
  const std::string line = text("account");
  EXPECT_EQ(line.find('\n'), line.size() - 1);
  const json account = json::parse(line);
  EXPECT_EQ(account.at("name"), "job");
  EXPECT_GT(account.at("token"), 0);
  EXPECT_EQ(account.at("kind"), "lock");
  EXPECT_EQ(account.at("result"), "ran");
  EXPECT_EQ(account.at("reason"), nullptr);
  EXPECT_EQ(account.at("status"), 3);
  EXPECT_EQ(account.at("command_status"), 3);
  EXPECT_GE(account.at("waited_seconds"), 0);
  EXPECT_GE(account.at("held_seconds"), 0);
}

TEST_F(AccountTest, MayBeTheLastLineOfStandardErrorOrGoToADescriptor) {
  const Finished result =
      run(dlock("run", {"--verbose", "--json", "/dev/stderr", "job", "--", "sh", "-c", "echo mine; echo its >&2"}));
  EXPECT_EQ(result.out, "mine\n");
  const auto last = result.err.rfind('\n', result.err.size() - 2) + 1;
  EXPECT_EQ(json::parse(result.err.substr(last)).at("result"), "ran");
  EXPECT_THAT(result.err.substr(0, last), AllOf(HasSubstr("its\n"), HasSubstr("dlock: freed \"job\" after ")));
  std::vector<std::string> shell{"sh", "-c", "exec 3>>\"$0\"; exec \"$@\"", path("account")};
  for (const std::string& word : dlock("run", {"--json", "/dev/fd/3", "job", "--", "true"})) shell.push_back(word);
  std::ofstream(path("account")) << "[]\n";
  EXPECT_EQ(run(shell).status, 0);
  EXPECT_THAT(text("account"), testing::StartsWith("[]\n{\"name\":\"job\","));
}

TEST_F(AccountTest, NamesSeveralLocks) {
  EXPECT_EQ(run(run_with_books({"b", "a", "--", "true"})).status, 0);
  const json found = account();
  EXPECT_EQ(found.at("names"), json({"b", "a"}));
  EXPECT_EQ(found.at("tokens").size(), 2U);
  EXPECT_THAT(text("job.prom"), AllOf(HasSubstr("dlock_last_exit_status{name=\"a\",kind=\"lock\"} 0\n"),
                                      HasSubstr("dlock_last_exit_status{name=\"b\",kind=\"lock\"} 0\n")));
}

TEST_F(AccountTest, SaysThatAnotherClientHoldsTheLock) {
  Process holder(run_probe({"wait"}));
  holder.line();
  EXPECT_EQ(run(run_with_books({"--quiet", "--try", "job", "--", "true"})).status, 75);
  json found = account();
  EXPECT_EQ(found.at("result"), "conflict");
  EXPECT_EQ(found.at("reason"), "another client holds \"job\"");
  EXPECT_EQ(found.at("status"), 75);
  for (const char* none : {"token", "command_status", "held_seconds"}) EXPECT_EQ(found.at(none), nullptr) << none;
  EXPECT_EQ(run(run_with_books({"--quiet", "--wait", "10ms", "job", "--", "true"})).status, 76);
  found = account();
  EXPECT_THAT(std::string(found.at("reason")), HasSubstr("timed out waiting for \"job\""));
  EXPECT_GE(found.at("waited_seconds"), 0.01);
  EXPECT_EQ(result_in_metrics(), "conflict");
  EXPECT_EQ(metric("last_exit_status"), "76");
  EXPECT_EQ(metric("last_hold_seconds"), "none");
}

TEST_F(AccountTest, SaysThatTheLockWasLostAndWhy) {
  Process job(run_with_books({"job", "--", probe_path(), "listen"}));
  job.line();
  for (const auto& entry : std::filesystem::directory_iterator(scratch().path())) std::filesystem::remove(entry);
  EXPECT_EQ(job.finish().status, 79);
  const json found = account();
  EXPECT_EQ(found.at("result"), "lost");
  EXPECT_THAT(std::string(found.at("reason")), testing::StartsWith("lost \"job\": the file of "));
  EXPECT_EQ(found.at("status"), 79);
  EXPECT_EQ(found.at("command_status"), 33);
  EXPECT_EQ(result_in_metrics(), "lost");
}

TEST_F(AccountTest, SaysWhyNothingRan) {
  EXPECT_EQ(run(run_with_books({"job", "--", "/no/such"})).status, 127);
  EXPECT_EQ(account().at("result"), "failed");
  EXPECT_EQ(account().at("reason"), "cannot run \"/no/such\": No such file or directory");
  EXPECT_EQ(account().at("status"), 127);
  const Finished refused = run({dlock_path(), "run", "--url", "file://" + dlock_path(), "--metrics", path("job.prom"),
                                "--json", path("account"), "job", "--", "true"});
  EXPECT_EQ(account().at("result"), "failed");
  EXPECT_EQ(account().at("status"), refused.status);
  EXPECT_EQ("dlock: " + std::string(account().at("reason")) + "\n", refused.err);
  EXPECT_EQ(account().at("command_status"), nullptr);
  EXPECT_EQ(result_in_metrics(), "failed");
  EXPECT_EQ(metric("last_exit_status"), std::to_string(refused.status));
}

TEST_F(AccountTest, SaysThatASignalEndedTheWait) {
  Process holder(run_probe({"wait"}));
  holder.line();
  Process waiter(run_with_books({"--verbose", "job", "--", "true"}));
  EXPECT_THAT(waiter.error_line(), HasSubstr("asking for \"job\" at file://"));
  waiter.signal(SIGTERM);
  EXPECT_EQ(waiter.finish().status, 143);
  EXPECT_EQ(account().at("result"), "interrupted");
  EXPECT_EQ(result_in_metrics(), "interrupted");
}

TEST_F(AccountTest, IsKeptOfWhatIsHeldByHandAndOfEachTerm) {
  Process holder(run_with_books({"job"}, "hold"));
  holder.line();
  holder.signal(SIGTERM);
  EXPECT_EQ(holder.finish().status, 0);
  EXPECT_EQ(result_in_metrics(), "ran");
  const std::string success = metric("last_success_timestamp_seconds");
  EXPECT_NE(success, "none");
  EXPECT_EQ(run(run_with_books({"job", "--", "false"})).status, 1);
  EXPECT_EQ(metric("last_exit_status"), "1");
  EXPECT_EQ(metric("last_success_timestamp_seconds"), success);
  EXPECT_EQ(run(run_with_books({"--once", "job", "--", "false"}, "elect")).status, 1);
  EXPECT_THAT(text("job.prom"), HasSubstr("dlock_last_exit_status{name=\"job\",kind=\"election\"} 1\n"));
}

TEST_F(AccountTest, IsWholeWhereCommandsEndAtTheSameTime) {
  std::list<Process> all;
  for (int i = 0; i < 8; ++i) all.emplace_back(run_with_books({"--permits", "8", "job", "--", "true"}));
  for (Process& each : all) EXPECT_EQ(each.finish().status, 0);
  EXPECT_THAT(text("job.prom"),
              AllOf(testing::StartsWith("# HELP dlock_last_exit_status "),
                    HasSubstr("dlock_last_success_timestamp_seconds{name=\"job\",kind=\"semaphore\"} ")));
}

TEST_F(AccountTest, ThatCannotBeWrittenIsRefusedBeforeAnythingRuns) {
  for (const std::string option : {"--json", "--metrics"}) {
    for (const std::string& file : {path("none/file"), path("")}) {
      const Finished refused = run(dlock("run", {option, file, "job", "--", "echo", "ran"}));
      EXPECT_EQ(refused.status, 64);
      EXPECT_EQ(refused.out, "");
      EXPECT_THAT(refused.err, testing::StartsWith("dlock: " + option + ": cannot write \"" + file + "\": "));
    }
  }
}

// The command did its work, so its status stands.
TEST_F(AccountTest, ThatCannotBeWrittenInTheEndChangesNoStatus) {
  std::filesystem::create_directory(path("gone"));
  const Finished result = run(dlock("run", {"--json", path("gone/account"), "--metrics", path("gone/job.prom"), "job",
                                            "--", "rm", "-r", path("gone")}));
  EXPECT_EQ(result.status, 0);
  EXPECT_THAT(result.err, AllOf(HasSubstr("dlock: warning: the metrics were not written: "),
                                HasSubstr("dlock: warning: the account was not written: ")));
}

TEST_F(AccountTest, ToWhichAFileIsMissingSaysSo) {
  EXPECT_THAT(run(dlock("run", {"--json", "job", "--", "true"})).err, HasSubstr("--json takes a FILE"));
  EXPECT_THAT(run(dlock("run", {"--json", "-", "job", "--", "true"})).err, HasSubstr("or /dev/stderr, instead of"));
}

TEST_F(AccountTest, VerboseSaysWhatHappensInGoodOrder) {
  const Finished result = run(dlock("run", {"-v", "job", "--", "sh", "-c", "exit 4"}));
  EXPECT_EQ(result.status, 4);
  std::size_t at = 0;
  for (const std::string part : {"asking for \"job\" at file://", "took \"job\" with token ", "\"sh\" runs as process ",
                                 "\"sh\" ended with status 4", "freed \"job\" after "}) {
    at = result.err.find("dlock: " + part, at);
    ASSERT_NE(at, std::string::npos) << part << " in\n" << result.err;
  }
  EXPECT_EQ(run(dlock("run", {"job", "--", "true"})).err, "");
  EXPECT_EQ(run(dlock("run", {"-q", "-v", "job", "--", "true"})).status, 64);
}

}  // namespace
}  // namespace dlock::cli::test

// dlock bench, as a user would run it.
#include <csignal>
#include <filesystem>
#include <fstream>
#include <sstream>

#include <nlohmann/json.hpp>

#include "support/cli_test.hpp"
#include "support/job_shell.hpp"

namespace dlock::cli::test {
namespace {

using testing::HasSubstr;
using testing::Not;
using Json = nlohmann::json;

constexpr const char* unreachable = "redis://somebody:hunter2@127.0.0.1:1";

class Bench : public CliTest {
 protected:
  [[nodiscard]] std::string path(const std::string& name) const { return reports_.path() + "/" + name; }
  // dlock bench --quick --html FILE --json FILE WORDS...
  [[nodiscard]] std::vector<std::string> bench(const std::vector<std::string>& words) const {
    std::vector<std::string> command{dlock_path(),        "bench",  "--quick",          "--html",
                                     path("report.html"), "--json", path("report.json")};
    command.insert(command.end(), words.begin(), words.end());
    return command;
  }
  [[nodiscard]] std::string contents(const std::string& name) const {
    std::ifstream file(path(name));
    std::ostringstream text;
    text << file.rdbuf();
    return text.str();
  }
  [[nodiscard]] Json json() const { return Json::parse(contents("report.json")); }
  [[nodiscard]] std::vector<std::string> files() const {
    std::vector<std::string> names;
    for (const auto& each : std::filesystem::directory_iterator(reports_.path())) {
      names.push_back(each.path().filename().string());
    }
    return names;
  }

 private:
  ScratchDirectory reports_;
};

TEST_F(Bench, EndsWithATableAPageAndAllFigures) {
  const Finished result = run(bench({"--url", url(), "--scenario", "latency"}));
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("file"));
  EXPECT_THAT(result.out, HasSubstr("report.html"));
  EXPECT_THAT(result.err, Not(HasSubstr("to go"))) << "progress is for terminals";
  EXPECT_THAT(contents("report.html"), HasSubstr("</html>"));
  const Json report = json();
  EXPECT_EQ(report.at("complete"), true);
  EXPECT_EQ(report.at("measurements").at(0).at("scenario"), "latency");
  EXPECT_THAT(files(), testing::UnorderedElementsAre("report.html", "report.json"));
  EXPECT_TRUE(std::filesystem::is_empty(scratch().path())) << "what measuring left in the service is removed";
}

TEST_F(Bench, AServiceThatCannotBeReachedIsReportedAndTheOthersAreMeasured) {
  const Finished result =
      run(bench({"--url", unreachable, "--url", "nonsense", "--url", url(), "--scenario", "latency"}));
  EXPECT_EQ(result.status, 0);
  EXPECT_THAT(result.err, HasSubstr("dlock: redis://somebody:***@127.0.0.1:1: "));
  EXPECT_THAT(result.out, HasSubstr("redis://somebody:***@127.0.0.1:1"));
  EXPECT_EQ(json().at("services").size(), 1);
  EXPECT_EQ(json().at("problems").size(), 2);
  EXPECT_THAT(result.out + result.err + contents("report.html") + contents("report.json"), Not(HasSubstr("hunter2")));
}

TEST_F(Bench, NothingThatCanBeReachedIsAnError) {
  EXPECT_EQ(run(bench({"--url", unreachable, "--scenario", "latency"})).status, 69);
}

TEST_F(Bench, WrongArgumentsAreRefusedBeforeAnythingIsMeasured) {
  const auto refused = [&](const std::vector<std::string>& words, const std::string& complaint) {
    std::vector<std::string> command{dlock_path(), "bench"};
    command.insert(command.end(), words.begin(), words.end());
    const Finished result = run(command, {.directory = path("")});
    EXPECT_EQ(result.status, 64);
    EXPECT_EQ(result.out, "");
    EXPECT_THAT(result.err, HasSubstr(complaint));
    EXPECT_THAT(files(), testing::IsEmpty());
  };
  refused({"--scenario", "speed"}, "speed");
  refused({"--rate", "0"}, "--rate: must be a number greater than 0, not \"0\"");
  refused({"--rate", "many"}, "--rate: must be a number greater than 0, not \"many\"");
  refused({"--rate", "inf"}, "--rate: must be a number greater than 0, not \"inf\"");
  refused({"--html", "/nowhere/report.html"},
          "--html: cannot write \"/nowhere/report.html\": No such file or directory");
  refused({"--html", scratch().path()}, "it is not a file");
  refused({"--compare", "a.json", "b.json", "--quick"}, "--compare and --quick exclude each other");
}

TEST_F(Bench, AnOlderReportStaysUntilThereIsANewOne) {
  std::ofstream(path("report.html")) << "old";
  EXPECT_EQ(run(bench({"--scenario", "speed"})).status, 64);
  EXPECT_EQ(contents("report.html"), "old");
  EXPECT_EQ(run(bench({"--url", url(), "--scenario", "latency"})).status, 0);
  EXPECT_THAT(contents("report.html"), HasSubstr("</html>"));
}

TEST_F(Bench, ControlCKeepsWhatWasMeasured) {
  JobShell shell(bench({"--url", url(), "--scenario", "latency", "--scenario", "contention"}));
  shell.await("contention");
  shell.type("\x03");
  EXPECT_EQ(shell.job_news(), "exited " + std::to_string(128 + SIGINT));
  const Json report = json();
  EXPECT_EQ(report.at("complete"), false);
  EXPECT_EQ(report.at("measurements").at(0).at("scenario"), "latency");
  EXPECT_THAT(contents("report.html"), HasSubstr("</html>"));
  EXPECT_TRUE(std::filesystem::is_empty(scratch().path()));
}

class Compare : public Bench {
 protected:
  [[nodiscard]] Finished compare(const std::string& before, const std::string& after) const {
    return run({dlock_path(), "bench", "--compare", path(before), path(after)});
  }
  // A report like that of report.json, in which every figure is so many times as great.
  void write_scaled(const std::string& name, double factor) const {
    Json report = json();
    for (Json& measurement : report.at("measurements")) {
      for (Json& figure : measurement.at("figures")) {
        for (Json& value : figure.at("repeats")) value = value.get<double>() * factor;
      }
    }
    std::ofstream(path(name)) << report;
  }
};

TEST_F(Compare, TellsWhatChanged) {
  ASSERT_EQ(run(bench({"--url", url(), "--scenario", "latency"})).status, 0);
  EXPECT_EQ(compare("report.json", "report.json").status, 0);
  write_scaled("slow.json", 100);
  const Finished slower = compare("report.json", "slow.json");
  EXPECT_EQ(slower.status, 1);
  EXPECT_THAT(slower.out, HasSubstr("p50"));
  EXPECT_EQ(compare("slow.json", "report.json").status, 0);
}

TEST_F(Compare, AFileThatIsNoReportIsNamed) {
  std::ofstream(path("broken.json")) << R"({"schema": 1, "measurements": 7})";
  const auto refused = [&](const Finished& result, const std::string& complaint) {
    EXPECT_EQ(result.status, 64);
    EXPECT_THAT(result.err, HasSubstr(complaint));
  };
  refused(compare("missing.json", "broken.json"), "cannot read " + path("missing.json") + ": No such file");
  refused(compare("broken.json", "broken.json"), path("broken.json"));
}

}  // namespace
}  // namespace dlock::cli::test

// --help, the manual page, the guide and the completions of bash, zsh and fish name the same commands and options.
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <sstream>

#include "support/cli_test.hpp"

namespace dlock::cli::test {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

const std::vector<std::string> verbs{"run",    "hold",   "elect", "leader",   "status", "list",   "break",
                                     "forget", "doctor", "init",  "backends", "bench",  "torture"};

std::string contents(const std::string& path) {
  std::ifstream file(DLOCK_TEST_SOURCES "/" + path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

// The page that has this command.
std::string manual(const std::string& verb) {
  const std::string page = verb == "bench" || verb == "torture" ? "cli/dlock-" + verb + ".1" : "cli/dlock.1";
  // In roff a hyphen that is to be a minus sign is escaped.
  return std::regex_replace(contents(page), std::regex(R"(\\-)"), "-");
}

std::string help(const std::string& verb) {
  const Finished result = run({dlock_path(), verb, "--help"});
  EXPECT_EQ(result.status, 0);
  EXPECT_EQ(result.err, "");
  return result.out;
}

std::set<std::string> options_in(const std::string& text) {
  const std::string options = text.substr(0, text.find("Examples:"));
  const std::regex option("--[a-z-]+");
  std::set<std::string> found;
  for (std::sregex_iterator it(options.begin(), options.end(), option), end; it != end; ++it) found.insert(it->str());
  return found;
}

// In dlock's own words, not the parser's.
TEST(Documentation, Help_HasUsageExamplesAndDefaults) {
  for (const std::string& verb : verbs) {
    const std::string text = help(verb);
    EXPECT_EQ(run({dlock_path(), "help", verb}).out, text) << verb;
    EXPECT_EQ(run({dlock_path(), verb, "-h"}).out, text) << verb;
    EXPECT_THAT(text, HasSubstr("Usage: dlock " + verb + " [OPTIONS]"));
    EXPECT_THAT(text, HasSubstr("Examples:\n  ")) << verb;
    for (const char* leftover : {"Positionals", "SUBCOMMAND", "Subcommand", "REQUIRED", " x 2", "{", "\n\n\n"}) {
      EXPECT_THAT(text, Not(HasSubstr(leftover))) << verb;
    }
    if (verb != "run" && verb != "hold" && verb != "elect") continue;
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
      if (line.find(" TIME  ") == std::string::npos) continue;
      EXPECT_THAT(line, HasSubstr("(default ")) << verb;
    }
  }
  const std::string all = run({dlock_path(), "--help"}).out;
  EXPECT_EQ(run({dlock_path(), "help"}).out, all);
  EXPECT_THAT(all, HasSubstr("Examples:\n  dlock run"));
  EXPECT_THAT(all, Not(testing::ContainsRegex("SUBCOMMAND|Subcommand")));
}

TEST(Documentation, ManualAndGuide_HaveEachOptionAndStatus) {
  const std::string guide = contents("docs/cli.md");
  for (const std::string& verb : verbs) {
    const auto options = options_in(help(verb));
    EXPECT_THAT(options, Contains("--help"));
    for (const std::string& option : options) EXPECT_THAT(manual(verb), HasSubstr(option)) << verb;
  }
  for (const char* option : {"--json", "--metrics", "--verbose"}) EXPECT_THAT(guide, HasSubstr(option));
  for (const std::string status : {"64", "69", "70", "71", "74", "75", "76", "77", "78", "79", "126", "127"}) {
    EXPECT_THAT(run({dlock_path(), "--help"}).out, HasSubstr("\n  " + status + " ")) << "--help";
    EXPECT_THAT(manual("run"), HasSubstr("\n.B " + status + "\n")) << "manual";
    EXPECT_THAT(guide, HasSubstr("\n| " + status + " |")) << "guide";
  }
}

// ---- Completion, by the shells themselves
// ----------------------------------------------------------------------------

class Completion : public CliTest, public testing::WithParamInterface<std::string> {
 protected:
  using Candidates = std::set<std::string>;

  // One entry per line.
  [[nodiscard]] std::map<std::string, Candidates> of(const std::vector<std::string>& lines) const {
    const std::string sources = DLOCK_TEST_SOURCES;
    using Shell = std::pair<std::string, std::string>;  // its option, and its completion of dlock
    static const std::map<std::string, Shell> shells{{"bash", {"--norc", "dlock.bash-completion"}},
                                                     {"zsh", {"-f", "dlock.zsh-completion"}},
                                                     {"fish", {"--no-config", "dlock.fish"}}};
    const auto& [option, completion] = shells.at(GetParam());
    std::vector<std::string> command{GetParam(), option, sources + "/tests/cli/support/completions." + GetParam(),
                                     sources + "/cli/" + completion};
    command.insert(command.end(), lines.begin(), lines.end());
    const std::string folder = dlock_path().substr(0, dlock_path().rfind('/'));
    const Finished result =
        run(command, {.environment = {{"PATH", folder + ":/usr/bin:/bin"}, {"HOME", scratch().path()}}});
    EXPECT_EQ(result.err, "");
    std::map<std::string, Candidates> found;
    std::istringstream text(result.out);
    std::string of;
    for (std::string line; std::getline(text, line);) {
      if (line.starts_with("== ")) {
        of = line.substr(3);
      } else if (!line.empty()) {
        found[of].insert(line);
      }
    }
    return found;
  }
};

TEST_P(Completion, Line_OffersCommandsAndTheirOptions) {
  std::vector<std::string> lines{"dlock "};
  for (const std::string& verb : verbs) lines.push_back("dlock " + verb + " --");
  auto offered = of(lines);
  for (const std::string& verb : verbs) {
    EXPECT_THAT(offered["dlock "], Contains(verb));
    EXPECT_EQ(offered["dlock " + verb + " --"], options_in(help(verb))) << verb;
  }
}

TEST_P(Completion, Line_OffersNamesAndValues) {
  for (const std::string name : {"nightly-report", "a::b=c@d", "[x,y]"}) {
    ASSERT_EQ(run(dlock("run", {name, "--", "true"})).status, 0);
  }
  ASSERT_EQ(run(dlock("elect", {"--once", "next-leader", "--", "true"})).status, 0);
  const std::string at = " --url " + url() + " ";
  const std::vector<std::pair<std::string, testing::Matcher<Candidates>>> rows{
      {"run --url fi", ElementsAre("file://")},
      {"status" + at + "n", ElementsAre("nightly-report")},
      {"run" + at + "n", ElementsAre("nightly-report")},
      {"forget" + at + "n", ElementsAre("nightly-report")},
      {"status --kind election" + at + "n", ElementsAre("next-leader")},
      {"leader" + at + "n", ElementsAre("next-leader")},
      {"status --url=" + url() + " a::b=c@", ElementsAre(GetParam() == "bash" ? "d" : "a::b=c@d")},
      {"status --url file://u:p@" + scratch().path() + " a", IsEmpty()},  // file:// has no users
      {"run --kind", IsEmpty()},
      {"status --kind s", ElementsAre("semaphore")},
      {"bench --scenario rec", ElementsAre("recovery")},
      // Behind "--", the shell itself completes.
      {"run job -- ech", testing::AllOf(Contains("echo"), Not(Contains(testing::StartsWith("--"))))},
  };
  std::vector<std::string> lines;
  for (const auto& [line, expected] : rows) lines.push_back("dlock " + line);
  auto offered = of(lines);
  for (const auto& [line, expected] : rows) EXPECT_THAT(offered["dlock " + line], expected) << line;
}

INSTANTIATE_TEST_SUITE_P(Shells, Completion, testing::Values("bash", "zsh", "fish"),
                         [](const auto& shell) { return shell.param; });

}  // namespace
}  // namespace dlock::cli::test

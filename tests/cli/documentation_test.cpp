// --help and the manual page say the same; what readers try first does what the pages show.
#include <fstream>
#include <regex>
#include <sstream>
#include <tuple>

#include "support/cli_test.hpp"
#include "support/help.hpp"

namespace dlock::cli::test {
namespace {

std::string contents(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

// The page that has this command.
std::string manual(const std::string& verb) {
  const std::string page = verb == "bench" || verb == "torture" ? "/cli/dlock-" + verb + ".1" : "/cli/dlock.1";
  // In roff a hyphen that is to be a minus sign is escaped.
  return std::regex_replace(contents(DLOCK_TEST_SOURCES + page), std::regex(R"(\\-)"), "-");
}

std::vector<std::string> completions(const std::vector<std::string>& words) {
  std::string script =
      "source \"$0\"; COMP_WORDS=(\"$@\"); COMP_CWORD=$(($# - 1)); _dlock; printf '%s\\n' \"${COMPREPLY[@]}\"";
  std::vector<std::string> command{"bash", "-c", script, DLOCK_TEST_SOURCES "/cli/dlock.bash-completion"};
  command.insert(command.end(), words.begin(), words.end());
  const Finished result = run(command);
  EXPECT_EQ(result.err, "");
  std::vector<std::string> lines;
  std::istringstream text(result.out);
  for (std::string line; std::getline(text, line);) lines.push_back(line);
  return lines;
}

// A section of a page, from its heading to the next one.
std::string section(const std::string& page, const std::string& heading) {
  const std::string text = contents(DLOCK_TEST_SOURCES "/" + page);
  const auto begin = text.find("\n## " + heading + "\n");
  EXPECT_NE(begin, std::string::npos) << page << ": " << heading;
  return begin == std::string::npos ? "" : text.substr(begin, text.find("\n## ", begin + 1) - begin);
}

struct ShellBlock {
  std::string script;
  std::vector<std::string> shown;  // what it prints, where the page shows it
};

std::vector<ShellBlock> shell_blocks(const std::string& text) {
  const std::string shell = "```sh\n";
  const std::string plain = "\n```\n";
  std::vector<ShellBlock> blocks;
  for (auto at = text.find(shell); at != std::string::npos;) {
    at += shell.size();
    const auto end = text.find(plain, at);
    const auto next = text.find(shell, end);
    ShellBlock& block = blocks.emplace_back(ShellBlock{text.substr(at, end - at), {}});
    const auto shown = text.find(plain, end + plain.size());
    if (shown < next) {
      const auto from = shown + plain.size();
      std::istringstream lines(text.substr(from, text.find(plain, from) - from));
      for (std::string line; std::getline(lines, line);) block.shown.push_back(line);
    }
    at = next;
  }
  return blocks;
}

class Documentation : public CliTest {
 protected:
  // In an empty directory, with the dlock under test in PATH.
  [[nodiscard]] Finished run_script(const std::string& script) const {
    const std::string folder = dlock_path().substr(0, dlock_path().rfind('/'));
    const Process::Options options{.environment = {{"PATH", folder + ":/usr/bin:/bin"}}, .directory = scratch().path()};
    return Process({"sh", "-c", script}, options).finish();
  }
};

TEST_F(Documentation, EveryCommandShowsExamplesInItsHelp) {
  for (const std::string& verb : verbs) {
    const Finished help = run({dlock_path(), verb, "--help"});
    EXPECT_EQ(help.status, 0);
    EXPECT_EQ(help.err, "");
    EXPECT_THAT(help.out, testing::HasSubstr("Examples:\n  ")) << verb;
  }
  EXPECT_THAT(run({dlock_path(), "--help"}).out, testing::HasSubstr("Examples:\n  dlock run"));
}

// "dlock help", and "dlock help" of each command, in dlock's own words.
TEST_F(Documentation, HelpIsTheSameHoweverItIsAskedForAndHasNoWordsOfTheParser) {
  EXPECT_EQ(run({dlock_path(), "help"}).out, run({dlock_path(), "--help"}).out);
  for (const std::string& verb : verbs) {
    const std::string help = run({dlock_path(), verb, "--help"}).out;
    EXPECT_EQ(run({dlock_path(), "help", verb}).out, help) << verb;
    EXPECT_EQ(run({dlock_path(), verb, "-h"}).out, help) << verb;
    EXPECT_THAT(help, testing::HasSubstr("Usage: dlock " + verb + " [OPTIONS]"));
    for (const char* leftover : {"Positionals", "SUBCOMMAND", "Subcommand", "REQUIRED", " x 2", "{", "\n\n\n"}) {
      EXPECT_THAT(help, testing::Not(testing::HasSubstr(leftover))) << verb;
    }
  }
  EXPECT_THAT(run({dlock_path(), "--help"}).out, testing::Not(testing::ContainsRegex("SUBCOMMAND|Subcommand")));
}

TEST_F(Documentation, HelpNamesTheDefaultOfEachTime) {
  for (const char* verb : {"run", "hold", "elect"}) {
    std::istringstream help(run({dlock_path(), verb, "--help"}).out);
    for (std::string line; std::getline(help, line);) {
      if (line.find(" TIME  ") == std::string::npos) continue;
      EXPECT_THAT(line, testing::HasSubstr("(default ")) << verb;
    }
  }
}

// The completions: see completion_test.cpp.
TEST_F(Documentation, EveryOptionIsInTheManualAndInTheGuide) {
  const std::string guide = contents(DLOCK_TEST_SOURCES "/docs/cli.md");
  for (const std::string& verb : verbs) {
    const std::string manual_text = manual(verb);
    const auto options = options_in(run({dlock_path(), verb, "--help"}).out);
    EXPECT_THAT(options, testing::Contains("--help"));
    for (const std::string& option : options) EXPECT_THAT(manual_text, testing::HasSubstr(option)) << verb;
  }
  for (const char* option : {"--json", "--metrics", "--verbose"}) {
    EXPECT_THAT(guide, testing::HasSubstr(option));
  }
}

// bash quotes what it offers.
TEST_F(Documentation, TheCompletionQuotesTheNamesOfLocks) {
  ASSERT_EQ(run(dlock("run", {"with space", "--", "true"})).status, 0);
  EXPECT_THAT(completions({dlock_path(), "run", "--url", url(), "wi"}), testing::ElementsAre("with\\ space"));
}

TEST_F(Documentation, EveryExitStatusIsInHelpManualAndGuide) {
  const std::string help = run({dlock_path(), "--help"}).out;
  const std::string manual_text = manual("run");
  const std::string guide = contents(DLOCK_TEST_SOURCES "/docs/cli.md");
  for (const char* status : {"64", "69", "70", "71", "74", "75", "76", "77", "78", "79", "126", "127"}) {
    EXPECT_THAT(help, testing::HasSubstr("\n  " + std::string(status) + " ")) << "--help";
    EXPECT_THAT(manual_text, testing::HasSubstr("\n.B " + std::string(status) + "\n")) << "manual";
    EXPECT_THAT(guide, testing::HasSubstr("\n| " + std::string(status) + " |")) << "guide";
  }
}

TEST_F(Documentation, WhatIsTriedFirstDoesWhatThePagesShow) {
  for (const auto& [page, heading, least] :
       {std::tuple{"docs/quick-start.md", "On the command line", 3U}, std::tuple{"README.md", "Sixty seconds", 1U}}) {
    const std::string in_scratch =
        std::regex_replace(section(page, heading), std::regex("/tmp/myapp"), scratch().path());
    const auto blocks = shell_blocks(in_scratch);
    EXPECT_GE(blocks.size(), least) << page;
    for (const ShellBlock& block : blocks) {
      const Finished result = run_script(block.script);
      EXPECT_EQ(result.status, 0) << page << ":\n" << block.script << result.err;
      for (const std::string& line : block.shown) {
        const std::string constant = line.substr(0, line.find_first_of("0123456789"));  // tokens differ each time
        EXPECT_THAT(result.out + result.err, testing::HasSubstr(line.starts_with("my token") ? constant : line))
            << page;
      }
    }
  }
}

}  // namespace
}  // namespace dlock::cli::test

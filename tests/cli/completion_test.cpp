// What bash, zsh and fish offer behind "dlock", asked of the shells themselves.
#include <algorithm>
#include <map>
#include <set>
#include <sstream>

#include "support/cli_test.hpp"
#include "support/help.hpp"

namespace dlock::cli::test {
namespace {

using Candidates = std::set<std::string>;

const std::string bash_script =
    R"(source "$0"
       for line in "$@"; do
         # As readline splits it.
         read -ra raw <<<"$line"
         COMP_LINE=$line COMP_WORDS=()
         for word in "${raw[@]}"; do
           while [[ $word =~ ^([^:=@]*)([:=@]+)(.*)$ ]]; do
             [[ ${BASH_REMATCH[1]} ]] && COMP_WORDS+=("${BASH_REMATCH[1]}")
             COMP_WORDS+=("${BASH_REMATCH[2]}")
             word=${BASH_REMATCH[3]}
           done
           [[ $word ]] && COMP_WORDS+=("$word")
         done
         [[ $line == *' ' ]] && COMP_WORDS+=('')
         COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
         _dlock
         printf '%s\n' "== $line" "${COMPREPLY[@]}"
       done)";

const std::string fish_script =
    R"(source $argv[1]
       for line in $argv[2..]
         echo "== $line"
         complete -C $line | string replace -r '\t.*' ''
       end)";

class Completion : public CliTest, public testing::WithParamInterface<std::string> {
 protected:
  // Of each of the lines.
  [[nodiscard]] std::map<std::string, Candidates> of(const std::vector<std::string>& lines) const {
    const std::string sources = DLOCK_TEST_SOURCES;
    std::vector<std::string> command;
    if (GetParam() == "bash") {
      command = {"bash", "-c", bash_script, sources + "/cli/dlock.bash-completion"};
    } else if (GetParam() == "zsh") {
      command = {"zsh", "-f", sources + "/tests/cli/support/completions.zsh", sources + "/cli/dlock.zsh-completion"};
    } else {
      command = {"fish", "--no-config", "-c", fish_script, sources + "/cli/dlock.fish"};
    }
    command.insert(command.end(), lines.begin(), lines.end());
    const std::string folder = dlock_path().substr(0, dlock_path().rfind('/'));
    const Finished result =
        run(command, {.environment = {{"PATH", folder + ":/usr/bin:/bin"}, {"HOME", scratch().path()}}});
    EXPECT_EQ(result.err, "");
    return candidates_in(result.out);
  }
  [[nodiscard]] Candidates of(const std::string& line) const { return of(std::vector{line})[line]; }

 private:
  static std::map<std::string, Candidates> candidates_in(const std::string& output) {
    std::map<std::string, Candidates> found;
    std::istringstream text(output);
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

TEST_P(Completion, OffersEveryOptionOfTheHelpAndNoOther) {
  std::vector<std::string> lines;
  for (const std::string& verb : verbs) lines.push_back("dlock " + verb + " --");
  auto offered = of(lines);
  for (const std::string& verb : verbs) {
    EXPECT_EQ(offered["dlock " + verb + " --"], options_in(run({dlock_path(), verb, "--help"}).out)) << verb;
  }
}

TEST_P(Completion, OffersTheCommands) {
  const auto offered = of("dlock ");
  for (const std::string& verb : verbs) EXPECT_THAT(offered, testing::Contains(verb));
}

TEST_P(Completion, OffersTheSchemesOfThisBuild) {
  EXPECT_THAT(of("dlock run --url fi"), testing::ElementsAre("file://"));
}

TEST_P(Completion, OffersTheNamesOfLocks) {
  ASSERT_EQ(run(dlock("run", {"nightly-report", "--", "true"})).status, 0);
  ASSERT_EQ(run(dlock("elect", {"--once", "next-leader", "--", "true"})).status, 0);
  for (const std::string verb : {"status", "run", "forget"}) {
    EXPECT_THAT(of("dlock " + verb + " --url " + url() + " n"), testing::ElementsAre("nightly-report")) << verb;
  }
  for (const std::string words : {"status --kind election", "leader"}) {
    EXPECT_THAT(of("dlock " + words + " --url " + url() + " n"), testing::ElementsAre("next-leader")) << words;
  }
}

TEST_P(Completion, AValueWithColonsAndSignsIsOneWord) {
  for (const std::string name : {"a::b=c@d", "[x,y]"}) ASSERT_EQ(run(dlock("run", {name, "--", "true"})).status, 0);
  const std::string with_user = "file://u:p@" + scratch().path();
  EXPECT_THAT(of("dlock status --url=" + url() + " a::b=c@"),
              testing::ElementsAre(GetParam() == "bash" ? "d" : "a::b=c@d"));
  EXPECT_THAT(of("dlock status --url " + with_user + " a"), testing::IsEmpty()) << "file:// has no users";
  EXPECT_THAT(of("dlock run --kind"), testing::IsEmpty());
}

TEST_P(Completion, OffersTheValuesOfOptions) {
  EXPECT_THAT(of("dlock status --kind s"), testing::ElementsAre("semaphore"));
  EXPECT_THAT(of("dlock bench --scenario rec"), testing::ElementsAre("recovery"));
}

TEST_P(Completion, LeavesTheCommandToItself) {
  const auto offered = of("dlock run job -- ech");
  EXPECT_THAT(offered, testing::Contains("echo"));
  EXPECT_THAT(offered, testing::Not(testing::Contains(testing::StartsWith("--"))));
}

INSTANTIATE_TEST_SUITE_P(Shells, Completion, testing::Values("bash", "zsh", "fish"),
                         [](const auto& shell) { return shell.param; });

}  // namespace
}  // namespace dlock::cli::test

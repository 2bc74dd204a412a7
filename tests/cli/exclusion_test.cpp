// One lock, several dlock commands.
#include <list>
#include <stdexcept>

#include "support/cli_test.hpp"

namespace dlock::cli::test {
namespace {

class Exclusion : public CliTest {};

TEST_F(Exclusion, OfManyCommandsThatTryAtOnceExactlyOneRuns) {
  std::list<Process> contenders;
  for (int i = 0; i < 8; ++i) contenders.emplace_back(run_probe({"wait"}, {"--try"}));
  // The winner's command goes on until its input ends; the others end by themselves.
  int winners = 0;
  std::list<Process> running;
  for (Process& contender : contenders) {
    std::string first;
    try {
      first = contender.line();
    } catch (const std::runtime_error&) {
      EXPECT_EQ(contender.wait(), 75);
      continue;
    }
    EXPECT_THAT(first, testing::StartsWith("ready"));
    ++winners;
    running.push_back(std::move(contender));
  }
  EXPECT_EQ(winners, 1);
  for (Process& winner : running) EXPECT_EQ(winner.finish().status, 0);
}

}  // namespace
}  // namespace dlock::cli::test

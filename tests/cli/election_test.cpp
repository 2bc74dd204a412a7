// A candidate that leads more than once, or loses its lead.
#include <csignal>

#include "support/cli_test.hpp"

namespace dlock::cli::test {
namespace {

#ifdef DLOCK_TEST_WITH_MEMORY
// In a service of one process there is one candidate.
class LoneCandidate : public CliTest {
 protected:
  [[nodiscard]] static std::vector<std::string> elect(std::vector<std::string> options,
                                                      const std::vector<std::string>& words) {
    std::vector<std::string> command{dlock_path(), "elect", "--url", "memory://"};
    command.insert(command.end(), options.begin(), options.end());
    for (const char* word : {"post", "--"}) command.emplace_back(word);
    command.insert(command.end(), words.begin(), words.end());
    return command;
  }
};

TEST_F(LoneCandidate, CampaignsAgainWhenTheCommandHasEndedUntilASignal) {
  Process candidate(elect({}, {probe_path(), "listen"}));
  (void)candidate.error_line();  // that nobody else takes part
  (void)candidate.line();
  candidate.signal(SIGUSR1);
  EXPECT_EQ(candidate.error_line(), "dlock: the command ended with status 33; campaigning again");
  EXPECT_EQ(candidate.line(), std::to_string(SIGUSR1));
  EXPECT_THAT(candidate.line(), testing::StartsWith("ready"));
  candidate.signal(SIGTERM);
  EXPECT_EQ(candidate.line(), std::to_string(SIGTERM));
  const Finished ended = candidate.finish();
  EXPECT_EQ(ended.status, 33);
  EXPECT_EQ(ended.err, "");
}

TEST_F(LoneCandidate, TheGuardianEndsTheCommandInEachTerm) {
  Process candidate(elect({"--quiet", "--lease", "500ms"}, {probe_path(), "family"}));
  for (int term = 0; term < 2; ++term) {
    const auto pids = pids_in(candidate.line());
    const Watched leader(pids.at(0));
    const Watched grandchild(pids.at(1));
    candidate.signal(SIGSTOP);
    EXPECT_TRUE(leader.wait_for_death());
    EXPECT_TRUE(grandchild.wait_for_death());
    candidate.signal(SIGCONT);
  }
  EXPECT_THAT(candidate.error_line(), testing::StartsWith("dlock: lost \"post\""));
}

TEST_F(LoneCandidate, ThatLosesItsLeadershipExitsWith79IfItLeadsOnce) {
  Process candidate(elect({"--quiet", "--once", "--lease", "500ms"}, {probe_path(), "family"}));
  const Watched leader(pids_in(candidate.line()).at(0));
  candidate.signal(SIGSTOP);
  EXPECT_TRUE(leader.wait_for_death());
  candidate.signal(SIGCONT);
  EXPECT_EQ(candidate.wait(), 79);
}
#endif

}  // namespace
}  // namespace dlock::cli::test

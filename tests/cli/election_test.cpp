// elect and leader.
#include <nlohmann/json.hpp>

#include <csignal>
#include <sstream>

#include "support/cli_test.hpp"

namespace dlock::cli::test {
namespace {

using Json = nlohmann::json;

class Elections : public CliTest {
 protected:
  // dlock elect --url URL OPTIONS... post -- probe WORDS...
  [[nodiscard]] std::vector<std::string> elect_probe(std::vector<std::string> words,
                                                     std::vector<std::string> options = {}) const {
    std::vector<std::string> command = dlock("elect", std::move(options));
    for (const char* word : {"post", "--"}) command.emplace_back(word);
    command.push_back(probe_path());
    command.insert(command.end(), words.begin(), words.end());
    return command;
  }
  // What a leader of that value is shown as.
  [[nodiscard]] static std::string shown(const std::string& value, const Process& leader) {
    return value + "\t.*:" + std::to_string(leader.pid()) + ":probe";
  }
};

TEST_F(Elections, TheLeaderIsShownWithItsValue) {
  Process leader(elect_probe({"wait"}, {"--value", "10.0.0.7:80"}));
  (void)leader.line();
  const Finished seen = run(dlock("leader", {"post"}));
  EXPECT_EQ(seen.status, 0) << seen.err;
  EXPECT_THAT(seen.out, testing::MatchesRegex(shown("10.0.0.7:80", leader) + "\n"));
  const Json json = Json::parse(run(dlock("leader", {"--json", "post"})).out);
  EXPECT_EQ(json["name"], "post");
  EXPECT_EQ(json["leader"]["value"], "10.0.0.7:80");
  EXPECT_GT(json["leader"]["token"].get<std::uint64_t>(), 0U);
  const Finished status = run(dlock("status", {"--kind", "election", "post"}));
  EXPECT_THAT(status.out, testing::HasSubstr("value   10.0.0.7:80\n"));
  EXPECT_THAT(run(dlock("list", {"--kind", "election"})).out, testing::HasSubstr("10.0.0.7:80\n"));
  EXPECT_EQ(run(dlock("list")).out, "") << "elections are no locks";
}

TEST_F(Elections, ThatNobodyLeadsIsSaidAndIsStatus1) {
  const Finished nobody = run(dlock("leader", {"post"}));
  EXPECT_EQ(nobody.status, 1);
  EXPECT_EQ(nobody.out, "");
  EXPECT_EQ(nobody.err, "dlock: nobody leads \"post\"\n");
  const Finished json = run(dlock("leader", {"--json", "post"}));
  EXPECT_EQ(json.status, 1);
  EXPECT_EQ(Json::parse(json.out), (Json{{"name", "post"}, {"leader", nullptr}}));
}

TEST_F(Elections, OneOfManyLeads) {
  Process leader(elect_probe({"wait"}));
  (void)leader.line();
  const Finished tried = run(elect_probe({"wait"}, {"--try"}));
  EXPECT_EQ(tried.status, 75);
  EXPECT_EQ(tried.out, "");
  EXPECT_EQ(tried.err, "dlock: another client leads \"post\"\n");
  const Finished waited = run(elect_probe({"wait"}, {"--wait", "20ms"}));
  EXPECT_EQ(waited.status, 76);
  EXPECT_EQ(waited.err, "dlock: timed out waiting for \"post\": another client leads it\n");
}

TEST_F(Elections, ACandidateLeadsWhenTheLeaderIsKilledAndAFollowerSeesIt) {
  Process first(elect_probe({"wait"}, {"--value", "first"}));
  (void)first.line();
  Process follower(dlock("leader", {"--follow", "post"}));
  EXPECT_THAT(follower.line(), testing::MatchesRegex(shown("first", first)));
  Process second(elect_probe({"wait"}, {"--value", "second"}));
  first.signal(SIGKILL);
  EXPECT_THAT(second.line(), testing::StartsWith("ready"));
  // Before that, nobody leads for a moment, or somebody who has not written yet who it is.
  const testing::Matcher<std::string> is_second = testing::MatchesRegex(shown("second", second));
  while (!is_second.Matches(follower.line())) {  // ended by the hang guard if it never comes
  }
  second.signal(SIGKILL);
  EXPECT_EQ(follower.line(), "");
  follower.signal(SIGTERM);
  EXPECT_EQ(follower.finish().status, 0);
}

TEST_F(Elections, ASignalEndsACandidateThatWaits) {
  Process leader(elect_probe({"wait"}));
  (void)leader.line();
  Process candidate(elect_probe({"wait"}, {"--connect-wait", "forever"}));
  candidate.signal(SIGINT);
  const Finished ended = candidate.finish();
  EXPECT_EQ(ended.status, 128 + SIGINT);
  EXPECT_EQ(ended.out, "");
}

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

TEST_F(LoneCandidate, LeadsOnceIfToldSoAndExitsWithTheCommandsStatus) {
  const Finished led = run(elect({"--once", "-q"}, {"sh", "-c", "echo \"$DLOCK_NAME $DLOCK_KIND\"; exit 7"}));
  EXPECT_EQ(led.status, 7);
  EXPECT_EQ(led.out, "post election\n");
  EXPECT_EQ(led.err, "");
}

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

TEST_F(LoneCandidate, EndsIfTheCommandCannotBeRun) {
  EXPECT_EQ(run(elect({"-q"}, {"no-such-command-anywhere"})).status, 127);
}

TEST_F(LoneCandidate, ASignalBetweenTwoTermsEndsIt) {
  Process candidate(elect({}, {"true"}));
  (void)candidate.error_line();
  EXPECT_THAT(candidate.error_line(), testing::HasSubstr("campaigning again"));
  candidate.signal(SIGTERM);
  EXPECT_EQ(candidate.finish().status, 128 + SIGTERM);
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

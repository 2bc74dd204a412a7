// Known holes, the report of a run, and rules in files.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <fstream>
#include <set>
#include <string>
#include <system_error>
#include <vector>

#include "torture/nemesis/network_faults.hpp"
#include "torture/rig/scratch_directory.hpp"
#include "torture/run/known_holes.hpp"
#include "torture/run/rules_file.hpp"
#include "torture/run/torture.hpp"

namespace dlock::torture {
namespace {

using namespace std::chrono_literals;
using testing::EndsWith;
using testing::HasSubstr;

TEST(KnownHolesTest, LocksInConnectionsToPostgresql_MayBeFreedUnderTheirHolder) {
  const KnownHole hole =
      known_hole({.backend = "postgresql", .strategy = "advisory", .lease_kind = LeaseKind::session});
  EXPECT_TRUE(hole.rules.contains(Rule::exclusion));
  EXPECT_FALSE(hole.rules.contains(Rule::fencing)) << "a resource that checks tokens is safe nevertheless";
  EXPECT_TRUE(hole.told_at_once);
  EXPECT_FALSE(hole.why.empty());
  for (const Capabilities& other :
       {Capabilities{.backend = "postgresql", .strategy = "table", .lease_kind = LeaseKind::per_lock},
        Capabilities{.backend = "zookeeper", .strategy = "sequential", .lease_kind = LeaseKind::session}}) {
    EXPECT_TRUE(known_hole(other).rules.empty()) << other.backend;
  }
}

TEST(KnownHolesTest, Faults_OpenThemForALease) {
  const std::vector<Fault> faults{{"reset", "", nullptr, Linger::briefly, 1, Opens::when_struck},
                                  {"cut", "", nullptr, Linger::briefly, 1, Opens::while_it_lasts},
                                  {"slow", "", nullptr}};
  const Hole hole = hole_under({.rules = {Rule::exclusion}, .told_at_once = true}, faults, 3s);
  EXPECT_EQ(hole.rules, std::set<Rule>{Rule::exclusion});
  EXPECT_EQ(hole.strikes, std::set<std::string>{"reset"});
  EXPECT_EQ(hole.faults, std::set<std::string>{"cut"});
  EXPECT_EQ(hole.belief, 3s);
  EXPECT_TRUE(hole.told_at_once);
  EXPECT_TRUE(hole_under({}, faults, 3s).strikes.empty()) << "there is no hole";
  rig::TcpProxy proxy(rig::Endpoint::loopback(1));
  const Hole of_network = hole_under({.rules = {Rule::exclusion}}, network_faults({&proxy}, 1), 1s);
  EXPECT_EQ(of_network.strikes, (std::set<std::string>{"connections reset", "connections refused"}));
  EXPECT_EQ(of_network.faults, std::set<std::string>{"connection cut at some byte"});
}

Outcome sound_outcome() {
  Outcome outcome{.ran = std::chrono::seconds(60), .seed = 7, .directory = "/histories"};
  outcome.verdict.counts = {.acquires = 10, .grants = 8, .takeovers = 2, .losses = 1, .stale_writes = 3, .writes = 20};
  return outcome;
}

TEST(ReportTest, Verdict_IsTheLastLine) {
  Outcome outcome = sound_outcome();
  EXPECT_THAT(report(outcome), testing::StartsWith("seed           7\n"));
  EXPECT_THAT(report(outcome), HasSubstr("writes         20 taken, 3 stale ones refused\n"));
  EXPECT_THAT(report(outcome), EndsWith("verdict        all promises were kept\n"));
  outcome.missing = {"losses: 0 instead of at least 1"};
  EXPECT_TRUE(outcome.inconclusive());
  EXPECT_THAT(report(outcome), HasSubstr("missing        losses: 0 instead of at least 1\n"));
  EXPECT_THAT(report(outcome), EndsWith("verdict        no violation, but too little happened to show anything\n"));
  outcome.interrupted = true;
  EXPECT_THAT(report(outcome), EndsWith("verdict        no violation, but the run was interrupted\n"));
  outcome.verdict.violations = {{Rule::fencing, "an older write was taken", {}}};
  outcome.verdict.found = {{Rule::fencing, 12}};
  EXPECT_TRUE(outcome.violated());
  EXPECT_FALSE(outcome.inconclusive());
  EXPECT_THAT(report(outcome), testing::StartsWith("fencing: an older write was taken\n"));
  EXPECT_THAT(report(outcome), EndsWith("verdict        VIOLATED: fencing (12)\n"));
}

TEST(ReportTest, KnownHole_ShowsWhatItExcused) {
  Outcome outcome = sound_outcome();
  outcome.known_hole = {.rules = {Rule::exclusion}, .why = "the server forgets"};
  outcome.verdict.excused = {{Rule::exclusion, 3}};
  EXPECT_FALSE(outcome.violated());
  EXPECT_THAT(report(outcome), HasSubstr("known hole     the server forgets; exclusion: seen 3 times\n"));
}

class RulesFileTest : public testing::Test {
 protected:
  [[nodiscard]] std::string text() const {
    std::string all;
    std::getline(std::ifstream(file), all, '\0');
    return all;
  }
  rig::ScratchDirectory scratch;
  std::string file = scratch.path() + "/rules.json";
};

TEST_F(RulesFileTest, SavedRules_AreLoaded) {
  const Rules rules{.slack = 1s,
                    .release = 2s,
                    .loss_slack = 3ms,
                    .recovery = 4s,
                    .settled = 5s,
                    .hand_over = 6ns,
                    .without = {Rule::exclusion, Rule::hand_over},
                    .hole = {.rules = {Rule::growing_tokens},
                             .strikes = {"server killed"},
                             .faults = {"cut"},
                             .belief = 7s,
                             .told_at_once = true}};
  save(rules, file);
  const std::string saved = text();
  for (const char* part :
       {": 1000000000,", ": 2000000000,", ": 3000000,", ": 4000000000,", ": 5000000000,", ": 6,", "\"exclusion\"",
        "\"hand-over\"", "\"growing tokens\"", "\"server killed\"", "\"cut\"", ": 7000000000,", ": true"}) {
    EXPECT_THAT(saved, HasSubstr(part));
  }
  save(load_rules(file), file);
  EXPECT_EQ(text(), saved);
  save(Rules(), file);
  EXPECT_TRUE(load_rules(file).hole.rules.empty()) << "a file without a hole";
}

TEST_F(RulesFileTest, FileThatHasNoRules_IsRefusedByName) {
  EXPECT_THROW((void)load_rules(file), std::runtime_error);
  save(Rules(), file);
  const std::string good = text();
  for (const auto& [from, to] :
       {std::pair<std::string, std::string>{"\"slack_ns\"", "\"slack\""}, {"[]", "[\"no such rule\"]"}}) {
    std::string changed = good;
    changed.replace(changed.find(from), from.size(), to);
    std::ofstream(file) << changed;
    try {
      (void)load_rules(file);
      ADD_FAILURE() << to;
    } catch (const std::runtime_error& error) {
      EXPECT_THAT(error.what(), HasSubstr(file));
    }
  }
  EXPECT_THROW(save(Rules(), scratch.path() + "/none/rules.json"), std::system_error);
}

}  // namespace
}  // namespace dlock::torture

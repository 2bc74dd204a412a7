// A run: its known holes, its report and its rules in files; and what it shares with its workers: a board, a plan, a
// resource with tokens.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <fstream>
#include <functional>
#include <iterator>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "torture/nemesis/network_faults.hpp"
#include "torture/rig/scratch_directory.hpp"
#include "torture/run/known_holes.hpp"
#include "torture/run/rules_file.hpp"
#include "torture/run/torture.hpp"
#include "torture/worker/board.hpp"
#include "torture/worker/plan.hpp"
#include "torture/worker/resource.hpp"

namespace dlock::torture {
namespace {

using namespace std::chrono_literals;
using testing::EndsWith;
using testing::HasSubstr;

std::string text_of(const std::string& file) {
  std::ifstream in(file);
  return {std::istreambuf_iterator<char>(in), {}};
}

auto refuses(const std::string& file) {
  return testing::ThrowsMessage<std::runtime_error>(HasSubstr(file));
}

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
  [[nodiscard]] std::string text() const { return text_of(file); }
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
    EXPECT_THAT([this] { (void)load_rules(file); }, refuses(file)) << changed;
  }
  EXPECT_THROW(save(Rules(), scratch.path() + "/none/rules.json"), std::system_error);
}

// --- Shared with workers ---------------------------------------------------------------------------------------------

class BoardTest : public testing::Test {
 protected:
  [[nodiscard]] std::size_t await_caught() const {
    while (!board.caught()) std::this_thread::yield();
    return *board.caught();
  }

  rig::ScratchDirectory scratch;
  std::string file = scratch.path() + "/board";
  Board board{file, 4};
};

TEST_F(BoardTest, Boards_ShareAFile) {
  const Board other(file, 4);
  other.seat(2).process.store(7);
  other.reach(2, Step::asking);
  EXPECT_EQ(board.seat(2).process.load(), 7);
  EXPECT_EQ(board.seat(2).step.load(), Step::asking);
  EXPECT_EQ(board.seat(1).process.load(), 0);
  EXPECT_FALSE(other.day_is_over());
  board.call_it_a_day();
  EXPECT_TRUE(other.day_is_over());
}

TEST_F(BoardTest, Trap_StopsOneContenderUntilItIsLetGo) {
  board.set_trap(Step::looked);
  std::atomic<bool> went_on = false;
  std::jthread contender([&] {
    board.reach(3, Step::asking);
    board.reach(3, Step::looked);
    went_on.store(true);
  });
  EXPECT_EQ(await_caught(), 3U);
  EXPECT_EQ(board.seat(3).step.load(), Step::looked);
  board.reach(1, Step::looked);  // comes back
  EXPECT_EQ(board.caught(), 3U);
  EXPECT_EQ(board.remove_trap(), 3U) << "it was sprung before it could be removed";
  EXPECT_FALSE(went_on.load());
  board.let_go();
  contender.join();
  EXPECT_TRUE(went_on.load());
}

TEST_F(BoardTest, CaughtContender_GoesOnWithTheNextTrapOrAtTheEnd) {
  board.set_trap(Step::granted);
  std::jthread contender([&] { board.reach(0, Step::granted); });
  (void)await_caught();
  board.set_trap(Step::looked);
  contender.join();
  EXPECT_EQ(board.caught(), std::nullopt);
  EXPECT_EQ(board.remove_trap(), std::nullopt);
  board.set_trap(Step::granted);
  contender = std::jthread([&] { board.reach(0, Step::granted); });
  (void)await_caught();
  board.call_it_a_day();
}

TEST(PlanTest, SavedPlan_IsLoaded) {
  const rig::ScratchDirectory scratch;
  const Plan plan{.process = 3,
                  .seed = 18446744073709551615U,
                  .history = "/h",
                  .board = "/b",
                  .resource = "/r",
                  .seats = 8,
                  .first_seat = 4,
                  .threads = 2,
                  .locks = {"a", "b/\"c\""},
                  .lock_kind = LockKind::semaphore,
                  .permits = 3,
                  .lease = std::chrono::milliseconds(1500),
                  .fixed_leases = true};
  save(plan, scratch.path() + "/plan");
  const std::string text = text_of(scratch.path() + "/plan");
  for (const char* part :
       {"\"process\": 3", "18446744073709551615", "\"/h\"", "\"/b\"", "\"/r\"", "\"seats\": 8", "\"first_seat\": 4",
        "\"threads\": 2", R"("b/\"c\"")", "semaphore", "\"permits\": 3", "1500000000", "true"}) {
    EXPECT_THAT(text, HasSubstr(part));
  }
  save(load_plan(scratch.path() + "/plan"), scratch.path() + "/again");
  EXPECT_EQ(text_of(scratch.path() + "/again"), text);
}

TEST(PlanTest, FileThatIsNoPlan_IsRefusedByName) {
  const rig::ScratchDirectory scratch;
  const std::string file = scratch.path() + "/plan";
  const Plan seat_that_is_not_there{.seats = 1, .first_seat = 1, .threads = 1, .locks = {"a"}};
  const Plan without_locks{.seats = 2, .locks = {}};
  for (const auto& write : std::vector<std::function<void()>>{[] {},  // there is no such file
                                                              [&] { std::ofstream(file) << "{}"; },
                                                              [&] { save(seat_that_is_not_there, file); },
                                                              [&] { save(without_locks, file); }}) {
    write();
    EXPECT_THAT([&] { (void)load_plan(file); }, refuses(file)) << text_of(file);
  }
}

// A writer of long ago must not write under a reader who has come since. Readers may learn of their tokens in any
// order.
TEST(ResourceTest, OlderAccess_IsRefusedAndNoted) {
  const rig::ScratchDirectory scratch;
  const std::string socket = scratch.path() + "/socket";
  const std::string history = scratch.path() + "/resource.jsonl";
  constexpr auto write = Mode::exclusive;
  constexpr auto read = Mode::shared;
  EXPECT_THROW(ResourceClient client(socket), std::system_error) << "no server listens";
  const Resource resource(socket, history, {"a", "b"}, LockKind::read_write);
  ResourceClient one(socket);
  ResourceClient other(socket);
  struct Access {
    ResourceClient& client;
    std::size_t lock;
    Mode mode;
    std::uint64_t token;
    bool taken;
  };
  const std::vector<Access> accesses{{one, 0, write, 5, true},  {other, 0, write, 5, true}, {one, 0, read, 4, false},
                                     {other, 0, read, 9, true}, {one, 0, read, 7, true},    {other, 0, write, 8, false},
                                     {one, 0, read, 8, true},   {other, 1, write, 1, true}};
  for (const auto& [client, lock, mode, token, taken] : accesses) {
    EXPECT_EQ(client.access(lock, mode, FencingToken(token)), taken) << token;
  }
  EXPECT_THROW((void)one.access(2, write, FencingToken(1)), std::system_error) << "there is no such lock";
  { const ResourceClient gone(socket); }
  EXPECT_TRUE(other.access(0, write, FencingToken(9)));
  const auto events = read_history(history);
  ASSERT_EQ(events.size(), accesses.size() + 1);
  for (std::size_t i = 0; i < accesses.size(); ++i) {
    EXPECT_EQ(events[i].kind, Kind::served);
    EXPECT_EQ(events[i].lock, accesses[i].lock == 0 ? "a" : "b");
    EXPECT_EQ(events[i].lock_kind, LockKind::read_write);
    EXPECT_EQ(events[i].mode, accesses[i].mode);
    EXPECT_EQ(events[i].token, FencingToken(accesses[i].token));
    EXPECT_EQ(events[i].yes, accesses[i].taken);
  }
}

}  // namespace
}  // namespace dlock::torture

// The crew of workers, and the nemesis that breaks things around it.
#include "torture/nemesis/nemesis.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <map>
#include <set>

#include "torture/rig/scratch_directory.hpp"

namespace dlock::torture {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using Noted = std::pair<Kind, int>;

class CrewTest : public testing::Test {
 protected:
  // A worker is this line of shell, with the plan as $0.
  [[nodiscard]] CrewConfig config(const std::string& worker = "exec sleep 1000") const {
    return {.command = {"/bin/sh", "-c", worker},
            .url = "file:///nowhere",
            .histories = scratch.path(),
            .plans = scratch.path(),
            .workers = 2,
            .plan = {.seats = 4, .threads = 2, .locks = {"a"}}};
  }
  [[nodiscard]] std::vector<Noted> noted() const {
    std::vector<Noted> all;
    for (const Event& event : read_history(file)) all.emplace_back(event.kind, event.subject);
    return all;
  }

  rig::ScratchDirectory scratch;
  std::string file = scratch.path() + "/run.jsonl";
  HistoryFile notes{file};
};

TEST_F(CrewTest, Workers_HavePlansOfTheirOwn) {
  const Crew crew(config(), notes);
  EXPECT_EQ(crew.member_at_seat(0), 0U);
  EXPECT_EQ(crew.member_at_seat(3), 1U);
  const Plan first = load_plan(scratch.path() + "/process-1.plan");
  const Plan second = load_plan(scratch.path() + "/process-2.plan");
  EXPECT_EQ(first.first_seat, 0U);
  EXPECT_EQ(second.first_seat, 2U);
  EXPECT_NE(first.seed, second.seed);
  EXPECT_NE(first.history, second.history);
}

TEST_F(CrewTest, StoppedAndKilledWorkers_AreNoted) {
  std::vector<pid_t> ended;
  CrewConfig wanted = config();
  wanted.ended = [&](pid_t pid) { ended.push_back(pid); };
  Crew crew(wanted, notes);
  crew.stop(1);
  EXPECT_TRUE(crew.stopped(1));
  crew.resume(1);
  EXPECT_FALSE(crew.stopped(1));
  const pid_t victim = crew.pid(0);
  crew.kill(0);
  EXPECT_THAT(ended, ElementsAre(victim));
  EXPECT_NE(crew.pid(0), victim) << "another is there";
  EXPECT_EQ(load_plan(scratch.path() + "/process-3.plan").first_seat, 0U);
  crew.stop(0);
  crew.kill(0);
  crew.resume(0);  // it was killed while it stood still
  EXPECT_THAT(noted(), ElementsAre(Noted(Kind::stopped, 2), Noted(Kind::resumed, 2), Noted(Kind::stopped, 1),
                                   Noted(Kind::killed, 1), Noted(Kind::stopped, 3), Noted(Kind::killed, 3)));
}

TEST_F(CrewTest, WorkerThatEndsByItself_HasCrashedAndIsReplaced) {
  // The first two end at once, their successors do not.
  Crew crew(config("case $0 in *process-[12].plan) echo oh; exit 3;; esac; exec sleep 1000"), notes);
  for (std::size_t i = 0; i < 2; ++i) {
    siginfo_t info{};
    ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(crew.pid(i)), &info, WEXITED | WNOWAIT), 0);
  }
  crew.look_after();
  crew.look_after();
  EXPECT_THAT(noted(), ElementsAre(Noted(Kind::crashed, 1), Noted(Kind::crashed, 2)));
  EXPECT_THAT(read_history(file).front().word,
              testing::AllOf(testing::HasSubstr("status 3"), testing::HasSubstr("oh")));
}

TEST_F(CrewTest, WorkerThatDoesNotEnd_IsResidue) {
  Crew crew(config("case $0 in *process-1.plan) exit 0;; esac; exec sleep 1000"), notes);
  crew.stop(1);
  crew.await_end(1ms);
  const auto all = noted();
  EXPECT_THAT(all, testing::Contains(Noted(Kind::killed, 2)));
  EXPECT_THAT(all, testing::Contains(Noted(Kind::residue, 2)));
}

class NemesisTest : public CrewTest {
 protected:
  // Faults that keep a list of what is broken.
  Fault fault(const std::string& kind, const std::string& group) {
    return {kind, group, [this, kind, group]() -> Heal {
              EXPECT_TRUE(broken.insert(kind).second || group.empty()) << kind << " is broken already";
              EXPECT_TRUE(group.empty() || ++of_group[group] == 1) << "two of " << group << " at once";
              order.push_back(kind);
              most_at_once = std::max(most_at_once, broken.size());
              if (order.size() >= enough) stop.request_stop();
              return [this, kind, group] {
                broken.erase(kind);
                if (!group.empty()) --of_group[group];
              };
            }};
  }
  Fault without_a_victim(int most) {
    return {"nothing to break", "", [this, most]() -> Heal {
              if (++asked == most) stop.request_stop();
              return nullptr;
            }};
  }
  std::vector<std::string> order_under(std::uint64_t seed, std::vector<Fault> faults = {}) {
    if (faults.empty()) {
      faults = {fault("cut", "network"), fault("slow", "network"), fault("killed", "server"), fault("stopped", "")};
    }
    order.clear();
    stop = std::stop_source();
    Nemesis nemesis(std::move(faults), 1ms, seed, crew, notes);
    EXPECT_FALSE(nemesis.rage(1h, stop.get_token())) << "it was stopped";
    EXPECT_TRUE(broken.empty()) << "everything is mended in the end";
    order.resize(std::min(order.size(), enough));
    return order;
  }

  static constexpr std::size_t enough = 60;
  Crew crew{config(), notes};
  std::stop_source stop;
  std::set<std::string> broken;
  std::map<std::string, int> of_group;
  std::vector<std::string> order;
  std::size_t most_at_once = 0;
  int asked = 0;
};

TEST_F(NemesisTest, Seed_DecidesTheOrderOfFaultsWhichAreNoted) {
  const auto first = order_under(1);
  EXPECT_EQ(order_under(1), first);
  EXPECT_NE(order_under(2), first);
  for (const std::string kind : {"cut", "slow", "killed", "stopped"}) {
    EXPECT_GE(std::count(first.begin(), first.end(), kind), 8) << kind;
  }
  EXPECT_EQ(most_at_once, 2U);
  std::map<Kind, std::size_t> times;
  for (const Event& event : read_history(file)) {
    ++times[event.kind];
    EXPECT_TRUE(event.kind != Kind::struck || event.until >= event.at) << "how long it took to break it";
  }
  EXPECT_GE(times[Kind::struck], 3 * enough);
  EXPECT_EQ(times[Kind::healed], times[Kind::struck]);
}

TEST_F(NemesisTest, EveryFault_IsStruckOnceBeforeAnyIsStruckAgain) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    std::vector<Fault> faults{fault("cut", ""), fault("slow", ""), fault("killed", ""), fault("stopped", "")};
    faults[2].weight = faults[3].weight = 4;
    const auto all = order_under(seed, faults);
    EXPECT_THAT(std::vector(all.begin(), all.begin() + 4),
                testing::UnorderedElementsAre("cut", "slow", "killed", "stopped"))
        << "seed " << seed;
    EXPECT_GT(std::count(all.begin(), all.end(), "killed"), 2 * std::count(all.begin(), all.end(), "cut"));
  }
}

TEST_F(NemesisTest, FaultWithoutAVictim_DoesNotCountAndDelaysNoOther) {
  Nemesis nemesis({without_a_victim(3)}, 1ms, 1, crew, notes);
  EXPECT_FALSE(nemesis.rage(1h, stop.get_token()));
  EXPECT_EQ(nemesis.struck().at("nothing to break"), 0U);
  EXPECT_TRUE(read_history(file).empty());
  const std::vector<Fault> faults{without_a_victim(static_cast<int>(10 * enough)), fault("cut", "network"),
                                  fault("slow", "network")};
  EXPECT_EQ(order_under(1, faults).size(), enough);
  EXPECT_GT(asked, 3);
  Nemesis out_of_time({fault("cut", "network")}, 1ms, 1, crew, notes);
  EXPECT_TRUE(out_of_time.rage(0ms, {}));
}

}  // namespace
}  // namespace dlock::torture

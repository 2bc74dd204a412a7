#include "torture/nemesis/nemesis.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "torture/rig/scratch_directory.hpp"

namespace dlock::torture {
namespace {

using namespace std::chrono_literals;

class NemesisTest : public testing::Test {
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
  std::vector<std::string> order_under(std::uint64_t seed) {
    return order_under(
        seed, {fault("cut", "network"), fault("slow", "network"), fault("killed", "server"), fault("stopped", "")});
  }
  std::vector<std::string> order_under(std::uint64_t seed, std::vector<Fault> faults) {
    order.clear();
    stop = std::stop_source();
    Nemesis nemesis(std::move(faults), 1ms, seed, crew, notes);
    EXPECT_FALSE(nemesis.rage(1h, stop.get_token())) << "it was stopped";
    EXPECT_TRUE(broken.empty()) << "all is mended in the end";
    order.resize(std::min(order.size(), enough));
    return order;
  }

  static constexpr std::size_t enough = 60;
  rig::ScratchDirectory scratch;
  std::string file = scratch.path() + "/run.jsonl";
  HistoryFile notes{file};
  Crew crew{{.command = {"/bin/sh", "-c", "exec sleep 1000"},
             .histories = scratch.path(),
             .plans = scratch.path(),
             .workers = 1,
             .plan = {.seats = 1, .threads = 1, .locks = {"a"}}},
            notes};
  std::stop_source stop;
  std::set<std::string> broken;
  std::map<std::string, int> of_group;
  std::vector<std::string> order;
  std::size_t most_at_once = 0;
};

TEST_F(NemesisTest, ASeedSaysWhatIsBrokenInWhichOrder) {
  const auto first = order_under(1);
  EXPECT_EQ(order_under(1), first);
  EXPECT_NE(order_under(2), first);
}

TEST_F(NemesisTest, EveryFaultHasItsTurnAndTwoMeet) {
  const auto all = order_under(3);
  for (const std::string kind : {"cut", "slow", "killed", "stopped"}) {
    EXPECT_GE(std::count(all.begin(), all.end(), kind), 8) << kind;
  }
  EXPECT_EQ(most_at_once, 2U);
}

TEST_F(NemesisTest, EverythingIsStruckOnceBeforeAnythingIsStruckAgain) {
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

TEST_F(NemesisTest, WhatFindsNothingToBreakDoesNotHoldUpTheOthers) {
  std::size_t asked = 0;
  const Fault never{"nothing to break", "", [&]() -> Heal {
                      if (++asked == 10 * enough) stop.request_stop();
                      return nullptr;
                    }};
  EXPECT_EQ(order_under(1, {never, fault("cut", "network"), fault("slow", "network")}).size(), enough);
  EXPECT_GT(asked, 0U);
}

TEST_F(NemesisTest, WhatIsStruckAndMendedIsNoted) {
  (void)order_under(4);
  std::size_t struck = 0;
  std::size_t healed = 0;
  for (const Event& event : read_history(file)) {
    if (event.kind == Kind::healed) ++healed;
    if (event.kind != Kind::struck) continue;
    ++struck;
    EXPECT_GE(event.until, event.at) << "how long it took to break it";
  }
  EXPECT_GE(struck, enough);
  EXPECT_EQ(healed, struck);
}

TEST_F(NemesisTest, WhatCouldNotBeStruckDoesNotCount) {
  int asked = 0;
  Nemesis nemesis({{"nothing to break", "",
                    [&]() -> Heal {
                      if (++asked == 3) stop.request_stop();
                      return nullptr;
                    }}},
                  1ms, 1, crew, notes);
  EXPECT_FALSE(nemesis.rage(1h, stop.get_token()));
  EXPECT_EQ(nemesis.struck().at("nothing to break"), 0U);
  EXPECT_TRUE(read_history(file).empty());
}

TEST_F(NemesisTest, EndsByItselfWhenTheTimeIsOver) {
  Nemesis nemesis({fault("cut", "network")}, 1ms, 1, crew, notes);
  EXPECT_TRUE(nemesis.rage(0ms, stop.get_token()));
  EXPECT_TRUE(order.empty());
}

}  // namespace
}  // namespace dlock::torture

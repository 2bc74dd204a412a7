#include "torture/run/rules_file.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <system_error>

#include "torture/rig/scratch_directory.hpp"

namespace dlock::torture {
namespace {

using namespace std::chrono_literals;

TEST(RulesFileTest, RulesComeBackAsTheyWereSaved) {
  const rig::ScratchDirectory scratch;
  const std::string file = scratch.path() + "/rules.json";
  save({.slack = 1s,
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
                 .told_at_once = true}},
       file);
  const Rules rules = load_rules(file);
  EXPECT_EQ(rules.slack, 1s);
  EXPECT_EQ(rules.release, 2s);
  EXPECT_EQ(rules.loss_slack, 3ms);
  EXPECT_EQ(rules.recovery, 4s);
  EXPECT_EQ(rules.settled, 5s);
  EXPECT_EQ(rules.hand_over, 6ns);
  EXPECT_THAT(rules.without, testing::ElementsAre(Rule::exclusion, Rule::hand_over));
  EXPECT_THAT(rules.hole.rules, testing::ElementsAre(Rule::growing_tokens));
  EXPECT_THAT(rules.hole.strikes, testing::ElementsAre("server killed"));
  EXPECT_THAT(rules.hole.faults, testing::ElementsAre("cut"));
  EXPECT_EQ(rules.hole.belief, 7s);
  EXPECT_TRUE(rules.hole.told_at_once);
  save(Rules(), file);
  EXPECT_TRUE(load_rules(file).hole.rules.empty()) << "a file need not speak of holes";
}

TEST(RulesFileTest, WhatAreNoRulesIsRefusedByName) {
  const rig::ScratchDirectory scratch;
  const std::string file = scratch.path() + "/rules.json";
  EXPECT_THROW((void)load_rules(file), std::runtime_error);
  save(Rules(), file);
  std::string text;
  std::getline(std::ifstream(file), text, '\0');
  const auto refused_with = [&](const std::string& from, const std::string& to) {
    std::string changed = text;
    changed.replace(changed.find(from), from.size(), to);
    std::ofstream(file) << changed;
    try {
      (void)load_rules(file);
      ADD_FAILURE() << to;
    } catch (const std::runtime_error& error) {
      EXPECT_THAT(error.what(), testing::HasSubstr(file));
    }
  };
  refused_with("\"slack_ns\"", "\"slack\"");
  refused_with("[]", "[\"no such rule\"]");
  EXPECT_THROW(save(Rules(), scratch.path() + "/none/rules.json"), std::system_error);
}

}  // namespace
}  // namespace dlock::torture

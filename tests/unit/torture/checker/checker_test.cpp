// What holds for all rules: names, exceptions, limits, histories that no run can have written, cost.
#include <algorithm>
#include <functional>
#include <map>
#include <stdexcept>

#include "tests/support/sanitizers.hpp"
#include "tests/unit/torture/checker/history_builder.hpp"

namespace dlock::torture {
namespace {

// One violation of each rule.
History all_broken() {
  History h;
  h.process(1).asks("exclusion").is_granted(1);
  h.process(2).asks("exclusion").is_granted(2).looks(true);
  h.process(1).looks(true);
  h.process(1).asks("unique").is_granted(1).releases().has_released().asks("unique").is_granted(1);
  h.process(1).asks("growing").is_granted(2).releases().has_released().asks("growing").is_granted(1).looks(true);
  h.serves("fencing", 2, true).serves("fencing", 1, true);
  h.process(1).asks("release").is_granted(1).is_told_of_loss().releases().has_released();
  h.process(1).asks("loss").is_granted(1).looks(false).after(1s).is_told_of_loss();
  h.process(1).asks("deadlines", 1s).after(9s).is_denied("timed out");
  h.heals();
  h.process(1).asks("progress").after(16s).is_denied("unavailable");
  h.process(1).after(1min).asks("hand-over").after(2s).is_granted(1);
  h.crashes(2);
  h.leaves("something");
  return h;
}

TEST(Checker, AnEmptyHistoryIsClean) {
  const Verdict verdict = check({}, {});
  EXPECT_TRUE(verdict.violations.empty());
  EXPECT_TRUE(verdict.found.empty());
}

TEST(Checker, FindsEachRuleBroken) {
  EXPECT_EQ(broken(all_broken()), Broken(all_rules.begin(), all_rules.end()));
}

TEST(Checker, ReportsInTheOrderOfTheRules) {
  const History h = all_broken();
  const Verdict verdict = check(h.events(), {});
  ASSERT_EQ(verdict.violations.size(), all_rules.size());
  for (std::size_t i = 0; i < all_rules.size(); ++i) EXPECT_EQ(verdict.violations[i].rule, all_rules[i]);
}

TEST(Checker, NamesTheEventsInTheOrderOfTimeAndOnce) {
  const History h = all_broken();
  for (const Violation& v : check(h.events(), {}).violations) {
    EXPECT_FALSE(v.events.empty()) << name_of(v.rule);
    EXPECT_TRUE(std::is_sorted(v.events.begin(), v.events.end(), std::less_equal<>())) << name_of(v.rule);
    EXPECT_LT(v.events.back(), h.events().size());
  }
}

TEST(Checker, LeavesOutTheRulesThatDoNotApply) {
  const History h = all_broken();
  for (const Rule rule : all_rules) {
    Broken others(all_rules.begin(), all_rules.end());
    others.erase(rule);
    EXPECT_EQ(broken(h, {.without = {rule}}), others) << name_of(rule);
  }
  EXPECT_EQ(broken(h, {.without = Broken(all_rules.begin(), all_rules.end())}), nothing);
}

TEST(Checker, CountsWhatIsLeftOut) {
  History h;
  h.leaves("first").leaves("another").probes("a", false);
  const Verdict verdict = check(h.events(), {.without = {Rule::no_residue}});
  EXPECT_EQ(verdict.excused, (std::map<Rule, std::size_t>{{Rule::no_residue, 2}}));
  EXPECT_EQ(verdict.found, (std::map<Rule, std::size_t>{{Rule::progress, 1}}));
}

TEST(Checker, RulesHaveDifferentNames) {
  std::set<std::string_view> names;
  for (const Rule rule : all_rules) names.insert(name_of(rule));
  EXPECT_EQ(names.size(), all_rules.size());
  EXPECT_FALSE(names.contains(""));
}

TEST(Checker, KeepsTheFirstTenOfARuleAndCountsAll) {
  History h;
  h.leaves("first");
  for (int i = 0; i < 24; ++i) h.leaves("another");
  h.probes("a", false);
  const Verdict verdict = check(h.events(), {});
  EXPECT_EQ(verdict.found.at(Rule::no_residue), 25U);
  EXPECT_EQ(verdict.found.at(Rule::progress), 1U);
  ASSERT_EQ(verdict.violations.size(), 1 + max_of_a_rule);
  EXPECT_EQ(verdict.violations[1].what, "first");
}

TEST(Checker, RefusesWhatNoRunCanHaveWritten) {
  const auto why = [](const History& h) -> std::string {
    try {
      (void)check(h.events(), {});
      return "nothing";
    } catch (const std::invalid_argument& e) {
      return e.what();
    }
  };
  History not_asked;
  not_asked.process(1).is_granted(1);
  EXPECT_EQ(why(not_asked), "process 1: \"granted\" of acquire 0, which was never asked");
  History of_another;
  of_another.process(1).asks("a").of_acquire(2).is_denied("busy");
  EXPECT_EQ(why(of_another), "process 1: \"denied\" of acquire 2, which was never asked");
  History asked_twice;
  const Event asks{.kind = Kind::asked, .process = 1, .attempt = 7, .lock = "a"};
  asked_twice.note(asks).note(asks);
  EXPECT_EQ(why(asked_twice), "process 1 asks acquire 7 twice");
  History not_granted;
  not_granted.process(1).asks("a").looks(true);
  EXPECT_EQ(why(not_granted), "process 1: \"looked\" of acquire 1 comes before what it is about");
  History not_held;
  not_held.process(1).asks("a").releases();
  EXPECT_EQ(why(not_held), "process 1: \"releasing\" of acquire 1 comes before what it is about");
  History not_released;
  not_released.process(1).asks("a").is_granted(1).has_released();
  EXPECT_EQ(why(not_released), "process 1: \"released\" of acquire 1 comes before what it is about");
  History again;
  again.note({.kind = Kind::started, .process = 1}).kills(1).note({.kind = Kind::started, .process = 1});
  EXPECT_EQ(why(again), "process 1 starts twice");
  History backwards;
  backwards.leaves("a").after(-1ns).leaves("b");
  EXPECT_EQ(why(backwards), "the history is not in chronological order");
}

// The signal of a loss may overtake the note of the grant, which another thread makes; and its process may be killed
// before that.
TEST(Checker, TakesALossBeforeItsGrant) {
  History h;
  h.process(1).asks("a").is_told_of_loss();
  h.kills(1);
  EXPECT_EQ(broken(h), nothing) << words(h);
}

// Were any rule to look at pairs, these would take it minutes: a hundred thousand million pairs.
TEST(Checker, ManyWaitersGrantsAndPausesAreNoBurden) {
  constexpr int many = dlock::test::sanitized ? 10'000 : 100'000;
  History h;
  h.process(1).asks("a").is_granted(1, 1h).looks(true);
  for (int i = 0; i < many; ++i) h.after(1us).process(2).asks("a");
  for (int i = 0; i < many; ++i) h.after(1us).stops(2).after(1us).resumes(2);
  h.process(1).after(1us).releases().has_released();
  for (int i = 1; i <= many; ++i) {
    auto& winner = h.after(1us).process(2).of_acquire(static_cast<std::uint64_t>(i));
    winner.is_granted(static_cast<std::uint64_t>(i) + 1, 1h).after(1us).looks(true);
    winner.after(1us).releases().after(1us).has_released();
  }
  h.heals();
  const Verdict verdict = check(h.events(), {});
  EXPECT_TRUE(verdict.found.empty());
  EXPECT_EQ(verdict.counts.hand_overs, static_cast<std::size_t>(many));
}

// The same where everything is broken: tokens fall from grant to grant, and every grant is believed in to the end.
TEST(Checker, ManyViolationsAreNoBurden) {
  constexpr std::uint64_t many = dlock::test::sanitized ? 5'000 : 50'000;
  History h;
  for (std::uint64_t i = 1; i <= many; ++i) h.after(1us).process(1).asks("a").is_granted(2 * many - i, 1h);
  for (std::uint64_t i = 1; i <= many; ++i) h.after(1us).process(1).of_acquire(i).looks(true);
  const Verdict verdict = check(h.events(), {});
  EXPECT_EQ(verdict.found.at(Rule::exclusion), many - 1);
  EXPECT_EQ(verdict.found.at(Rule::growing_tokens), many - 1);
}

}  // namespace
}  // namespace dlock::torture

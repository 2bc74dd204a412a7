// Findings of all rules: their order, exceptions and limits; histories that no run can have written; counts; excerpts.
#include "torture/checker/checker.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <functional>
#include <map>
#include <set>

#include "tests/support/sanitizers.hpp"
#include "tests/unit/torture/checker/history_text.hpp"

namespace dlock::torture {
namespace {

using namespace std::chrono_literals;
using testing::IsEmpty;

// One violation of each rule.
std::vector<Event> all_broken() {
  return history_of(
      "1: asks exclusion, granted 1; 2: asks exclusion, granted 2, held; 1: held, asks unique, granted 1, returns, "
      "asks unique, granted 1, asks growing, granted 2, returns, asks growing, granted 1, held; serve fencing 2 taken; "
      "serve fencing 1 taken; 1: asks release, granted 1, lost, returns, asks loss, granted 1, unheld, +1s lost, "
      "asks deadlines for 1s, +9s denied timed out; heal; 1: asks progress, +16s denied unavailable, "
      "+1min asks hand-over, +2s granted 1; crash 2; residue something");
}

std::set<Rule> broken(const std::vector<Event>& history, const Rules& rules = {}) {
  std::set<Rule> all;
  for (const auto& [rule, times] : check(history, rules).found) all.insert(rule);
  return all;
}

TEST(CheckerTest, Violations_AreInTheOrderOfRulesAndEvents) {
  const std::vector<Event> history = all_broken();
  const Verdict verdict = check(history, {});
  ASSERT_EQ(verdict.violations.size(), all_rules.size());
  std::set<std::string_view> names;
  for (std::size_t i = 0; i < all_rules.size(); ++i) {
    const Violation& v = verdict.violations[i];
    EXPECT_EQ(v.rule, all_rules[i]);
    EXPECT_FALSE(v.events.empty()) << name_of(v.rule);
    EXPECT_TRUE(std::is_sorted(v.events.begin(), v.events.end(), std::less_equal<>())) << name_of(v.rule);
    EXPECT_LT(v.events.back(), history.size());
    names.insert(name_of(v.rule));
  }
  EXPECT_EQ(names.size(), all_rules.size());
  EXPECT_FALSE(names.contains(""));
  EXPECT_THAT(check({}, {}).found, IsEmpty()) << "an empty history";
}

TEST(CheckerTest, RuleThatDoesNotApply_IsExcused) {
  const std::set<Rule> all(all_rules.begin(), all_rules.end());
  for (const Rule rule : all_rules) {
    std::set<Rule> others = all;
    others.erase(rule);
    EXPECT_EQ(broken(all_broken(), {.without = {rule}}), others) << name_of(rule);
  }
  EXPECT_THAT(broken(all_broken(), {.without = all}), IsEmpty());
  const Verdict verdict =
      check(history_of("residue first; residue another; probe a not"), {.without = {Rule::no_residue}});
  EXPECT_EQ(verdict.excused, (std::map<Rule, std::size_t>{{Rule::no_residue, 2}}));
  EXPECT_EQ(verdict.found, (std::map<Rule, std::size_t>{{Rule::progress, 1}}));
}

TEST(CheckerTest, KnownHole_CountsWhatItExcuses) {
  const auto history = history_of(
      "1: asks a, granted 1, held; strike terminated for 100ms; heal terminated; 2: asks a, granted 2, held; 1: held");
  const Rules rules{.hole = {.rules = {Rule::exclusion}, .strikes = {"terminated"}, .belief = 2s}};
  EXPECT_EQ(check(history, rules).excused, (std::map<Rule, std::size_t>{{Rule::exclusion, 1}}));
}

TEST(CheckerTest, ManyViolationsOfARule_KeepsTenAndCountsAll) {
  std::string text = "residue first";
  for (int i = 0; i < 24; ++i) text += "; residue another";
  const Verdict verdict = check(history_of(text + "; probe a not"), {});
  EXPECT_EQ(verdict.found.at(Rule::no_residue), 25U);
  EXPECT_EQ(verdict.found.at(Rule::progress), 1U);
  ASSERT_EQ(verdict.violations.size(), 1 + max_of_a_rule);
  EXPECT_EQ(verdict.violations[1].what, "first");
}

const std::vector<Row> refused{
    {"NeverAsked", "1: granted 1", "refused: process 1: \"granted\" of acquire 0, which was never asked"},
    {"AskedTwice", "1: asks a as 7, asks a as 7", "refused: process 1 asks acquire 7 twice"},
    {"LookedBeforeTheGrant", "1: asks a, held",
     "refused: process 1: \"looked\" of acquire 1 comes before what it is about"},
    {"ReleasedBeforeReleasing", "1: asks a, granted 1, released",
     "refused: process 1: \"released\" of acquire 1 comes before what it is about"},
    {"StartedTwice", "1: starts; kill 1; 1: starts", "refused: process 1 starts twice"},
    {"Backwards", "residue a; +-1ns residue b", "refused: the history is not in chronological order"},
};
INSTANTIATE_TEST_SUITE_P(Impossible, HistoryTest, testing::ValuesIn(refused), name_of_row);

// If any rule looked at pairs, these histories would take it minutes: a hundred thousand million pairs.
TEST(LongHistoryTest, WaitersPausesAndViolations_AreCheckedQuickly) {
  constexpr std::uint64_t many = dlock::test::sanitized ? 5'000 : 50'000;
  std::vector<Event> history;
  const auto note = [&](int process, Event event) {
    event.at = TimePoint(1h) + std::chrono::microseconds(history.size());
    event.process = process;
    event.lock = "a";
    history.push_back(std::move(event));
  };
  const auto hold = [&](int process, std::uint64_t attempt, std::uint64_t token) {
    note(process, {.kind = Kind::granted, .attempt = attempt, .token = FencingToken(token), .until = TimePoint(9h)});
    note(process, {.kind = Kind::looked, .attempt = attempt, .yes = true});
  };
  const auto ask = [&](std::uint64_t attempt) {
    note(1, {.kind = Kind::asked, .attempt = attempt, .until = TimePoint::max()});
  };
  for (std::uint64_t i = 1; i <= many; ++i) ask(i);
  for (std::uint64_t i = 1; i <= many; ++i) {
    note(0, {.kind = Kind::stopped, .subject = 1});
    note(0, {.kind = Kind::resumed, .subject = 1});
  }
  for (std::uint64_t i = 1; i <= many; ++i) {
    hold(1, i, i);
    note(1, {.kind = Kind::releasing, .attempt = i});
    note(1, {.kind = Kind::released, .attempt = i, .yes = true});
  }
  note(0, {.kind = Kind::healed, .word = std::string(everything)});
  const Verdict kept = check(history, {});
  EXPECT_THAT(kept.found, IsEmpty());
  EXPECT_EQ(kept.counts.hand_overs, many - 1);
  // Tokens fall from grant to grant, and each holder finds its lock held to the end.
  history.clear();
  for (std::uint64_t i = 1; i <= many; ++i) {
    ask(i);
    hold(1, i, 2 * many - i);
  }
  for (std::uint64_t i = 1; i <= many; ++i) note(1, {.kind = Kind::looked, .attempt = i, .yes = true});
  const Verdict broken = check(history, {});
  EXPECT_EQ(broken.found.at(Rule::exclusion), many - 1);
  EXPECT_EQ(broken.found.at(Rule::growing_tokens), many - 1);
}

// --- Counts ----------------------------------------------------------------------------------------------------------

Counts counts(std::string_view history) {
  return check(history_of(history), {}).counts;
}

TEST(CountsTest, AcquiresLossesWritesFaults_AreCounted) {
  const Counts seen = counts(
      "1: asks a, +3s granted 1, returns, asks a for 5s, +5s denied timed out; 2: asks b for 0s, denied busy, "
      "asks b for 0s, denied busy, asks b; strike kill; strike kill; strike partition; heal partition; "
      "3: asks c, granted 1, lost; serve a 2 taken; serve a 1 refused; serve a 2 taken");
  EXPECT_EQ(seen.acquires, 6U);
  EXPECT_EQ(seen.grants, 2U);
  EXPECT_EQ(seen.longest_wait, 3s);
  EXPECT_EQ(seen.denied, (std::map<std::string, std::size_t>{{"busy", 2}, {"timed out", 1}}));
  EXPECT_EQ(seen.losses, 1U);
  EXPECT_EQ(seen.writes, 2U);
  EXPECT_EQ(seen.stale_writes, 1U);
  EXPECT_EQ(seen.faults, (std::map<std::string, std::size_t>{{"kill", 2}, {"partition", 1}}));
}

TEST(CountsTest, HandOversAndTakeovers_AreToldApart) {
  const Counts waited =
      counts("1: asks a, granted 1; 2: asks a; 1: returns; 2: granted 2, returns; 1: asks a, granted 3");
  EXPECT_EQ(waited.hand_overs, 1U);
  EXPECT_EQ(waited.takeovers, 0U);
  const Counts taken = counts(
      "1: asks a, granted 1; kill 1; 2: asks a, granted 2; 3: asks a, granted 3; 2: releases, disowned; "
      "3: releases, unreleased; 4: asks a, granted 4, returns; 5: asks a, granted 5");
  EXPECT_EQ(taken.takeovers, 2U);
  EXPECT_EQ(taken.hand_overs, 0U);
  for (const std::string holds_with_it : {"read", "2"}) {
    const std::string acquires =
        "1: asks " + holds_with_it + ":a, granted 1; 2: asks " + holds_with_it + ":a, granted 2";
    EXPECT_EQ(counts(acquires).takeovers, 0U);
  }
  EXPECT_EQ(counts("1: asks read:a, granted 1; 2: asks write:a, granted 2").takeovers, 1U);
}

TEST(CountsTest, Stall_IsATimeOfAFreeLockWithAWaiter) {
  const Counts seen = counts(
      "1: asks a, +3s granted 1; heal; 2: asks a; 1: returns; 2: +2s granted 2, returns; 3: +9s asks a, granted 3");
  EXPECT_EQ(seen.longest_stall, 3s);
  EXPECT_EQ(seen.longest_stall_after, 2s);
  EXPECT_EQ(counts("1: asks a; 2: +3s asks b").longest_stall, 3s) << "never granted";
  const std::string handed_over =
      "1: asks a, granted 1, held; 2: asks a; 1: releases; 2: +0s granted 2; 1: +0s released";
  EXPECT_EQ(counts(handed_over + "; 2: +1min releases").longest_stall, 1ms) << "the very first wait";
}

// --- Excerpts --------------------------------------------------------------------------------------------------------

std::string only_excerpt(std::string_view text) {
  const std::vector<Event> history = history_of(text);
  const Verdict verdict = check(history, {});
  EXPECT_EQ(verdict.violations.size(), 1U);
  return verdict.violations.empty() ? "" : excerpt(history, verdict.violations.front());
}

TEST(ExcerptTest, Violation_ShowsItsEventsAndTheFaultsOfItsProcesses) {
  EXPECT_EQ(only_excerpt("1: asks a, granted 1 for 2s, held; 3: asks b for 5s; strike partition; stop 1; "
                         "+2500ms stop 3; 2: asks a, granted 2, held; resume 1; 1: held; kill 1"),
            "exclusion: process 1 found lock a held after process 2 had been granted it\n"
            "      +0.000000 s  process 1: is granted the lock, token 1, valid for 2.000000 s  [lock a, acquire 1]\n"
            "      +0.003000 s  fault: partition\n"
            "      +0.004000 s  process 1 is stopped\n"
            "      +2.506000 s  process 2: is granted the lock, token 2, valid for 10.000000 s  [lock a, acquire 1]\n"
            "      +2.508000 s  process 1 goes on\n"
            "      +2.509000 s  process 1: looks: held  [lock a, acquire 1]\n");
  EXPECT_EQ(excerpt({}, {.rule = Rule::no_residue, .what = "a key", .events = {}}), "no residue: a key\n");
}

TEST(ExcerptTest, ManyFaults_AreLeftOut) {
  std::string text = "1: asks a, granted 1";
  for (int i = 0; i < 12; ++i) text += "; strike partition; heal partition";
  const std::string shown = only_excerpt(text + "; 2: asks a, granted 2, held; 1: held");
  EXPECT_THAT(shown, testing::HasSubstr("  ... and 4 more things were done meanwhile\n"));
  EXPECT_EQ(std::count(shown.begin(), shown.end(), '\n'), 1 + 3 + 20 + 1) << shown;
}

}  // namespace
}  // namespace dlock::torture

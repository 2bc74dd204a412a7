// A known hole excuses those from whom a fault took the lock, for as long as they could not know, and nobody else.
#include "tests/unit/torture/checker/history_builder.hpp"

namespace dlock::torture {
namespace {

// The service ends sessions, as in Hole; a lease lasts two seconds.
const Rules of_sessions{.loss_slack = 500ms,
                        .hole = {.rules = {Rule::exclusion, Rule::growing_tokens},
                                 .strikes = {"terminated"},
                                 .faults = {"cut"},
                                 .belief = 2s,
                                 .told_at_once = true}};
// The service forgets grants: a holder hears of it when it asks next, or by its own clock.
const Rules of_failovers{
    .hole = {.rules = {Rule::exclusion}, .strikes = {"promoted"}, .belief = 2s, .told_at_once = false}};

// Process 1 has the lock, process 2 gets it so long after the fault, and process 1 believes in it for so much longer.
History overlap(const std::string& fault, nanoseconds until_the_next, nanoseconds until_the_look) {
  History h;
  h.process(1).asks("a").is_granted(1).looks(true);
  h.strikes(fault, 100ms).heals(fault);
  h.process(2).asks("a").after(until_the_next).is_granted(2).looks(true);
  h.process(1).after(until_the_look).looks(true);
  return h;
}

TEST(HoleTimes, AnOverlapRightAfterTheFaultIsExcusedAndCounted) {
  const History h = overlap("terminated", 10ms, 100ms);
  EXPECT_EQ(broken(h), Broken{Rule::exclusion}) << "without a hole";
  EXPECT_EQ(broken(h, of_sessions), nothing) << words(h, of_sessions);
  EXPECT_EQ(check(h.events(), of_sessions).excused, (std::map<Rule, std::size_t>{{Rule::exclusion, 1}}));
}

// Two servers believe that they are the one to ask.
TEST(HoleTimes, AReleaseThatTheFormerServerAnswersIsExcusedWhereTheHoleIsOne) {
  History h;
  h.process(1).asks("a").is_granted(1).looks(true);
  h.strikes("promoted", 1s);
  h.process(2).asks("a").is_granted(2).looks(true);
  h.process(1).releases().has_released();
  h.heals("promoted");
  Rules rules = of_failovers;
  EXPECT_EQ(broken(h, rules), Broken{Rule::honest_release});
  rules.hole.rules.insert(Rule::honest_release);
  EXPECT_EQ(broken(h, rules), nothing) << words(h, rules);
  rules.hole.strikes = {"cut"};
  EXPECT_TRUE(broken(h, rules).contains(Rule::honest_release)) << "another fault excuses nothing";
}

TEST(HoleTimes, AnotherFaultExcusesNothing) {
  EXPECT_EQ(broken(overlap("slow", 10ms, 100ms), of_sessions), Broken{Rule::exclusion});
}

TEST(HoleTimes, OtherRulesAreNotExcused) {
  Rules rules = of_sessions;
  rules.hole.rules = {Rule::growing_tokens};
  EXPECT_EQ(broken(overlap("terminated", 10ms, 100ms), rules), Broken{Rule::exclusion});
}

TEST(HoleTimes, AnOverlapBeforeTheFaultIsAViolation) {
  History h;
  h.process(1).asks("a").is_granted(1).looks(true);
  h.process(2).asks("a").is_granted(2).looks(true);
  h.process(1).looks(true);
  h.strikes("terminated", 100ms).heals("terminated");
  EXPECT_EQ(broken(h, of_sessions), Broken{Rule::exclusion});
}

TEST(HoleTimes, WhoHasAskedAfterTheFaultIsNotExcused) {
  History h;
  h.strikes("terminated", 100ms).heals("terminated");
  h.process(1).asks("a").is_granted(1).looks(true);
  h.process(2).asks("a").is_granted(2).looks(true);
  h.process(1).looks(true);
  EXPECT_EQ(broken(h, of_sessions), Broken{Rule::exclusion});
}

TEST(HoleTimes, WhoIsNotToldAtOnceIsNotExcused) {
  EXPECT_EQ(broken(overlap("terminated", 10ms, 600ms), of_sessions), Broken{Rule::exclusion});
}

TEST(HoleTimes, WhoStandsStillIsToldWhenItGoesOn) {
  const auto history = [](nanoseconds stopped, nanoseconds going) {
    History h;
    h.process(1).asks("a").is_granted(1).looks(true);
    h.stops(1);
    h.strikes("terminated", 100ms).heals("terminated");
    h.process(2).asks("a").is_granted(2).looks(true);
    h.after(stopped).resumes(1);
    h.process(1).after(going).looks(true);
    return h;
  };
  EXPECT_EQ(broken(history(1500ms, 100ms), of_sessions), nothing);
  EXPECT_EQ(broken(history(1000ms, 600ms), of_sessions), Broken{Rule::exclusion}) << "it goes on, and is not told";
  EXPECT_EQ(broken(history(2000ms, 1ms), of_sessions), Broken{Rule::exclusion}) << "its lease is over";
}

TEST(HoleTimes, TheEndOfTheBreakingCountsNotThatOfTheFault) {
  History h;
  h.strikes("terminated", 100ms);
  h.process(1).after(200ms).asks("a").is_granted(1).looks(true);
  h.process(2).asks("a").is_granted(2).looks(true);
  h.process(1).looks(true);
  h.heals("terminated");
  EXPECT_EQ(broken(h, of_sessions), Broken{Rule::exclusion});
}

TEST(HoleTimes, WhatMayEndSessionsAllTheTimeDoesSoUntilItIsHealed) {
  const auto history = [](const std::string& healed) {
    History h;
    h.strikes("cut", 1ms).heals(healed);
    h.process(1).asks("a").is_granted(1).looks(true);
    h.process(2).asks("a").is_granted(2).looks(true);
    h.process(1).looks(true);
    return h;
  };
  EXPECT_EQ(broken(history("slow"), of_sessions), nothing);
  EXPECT_EQ(broken(history("cut"), of_sessions), Broken{Rule::exclusion});
}

TEST(HoleTimes, WhoMayBelieveForALeaseIsExcusedForThatLong) {
  EXPECT_EQ(broken(overlap("promoted", 200ms, 1700ms), of_failovers), nothing);
  EXPECT_EQ(broken(overlap("promoted", 200ms, 1900ms), of_failovers), Broken{Rule::exclusion});
}

TEST(HoleTimes, AFaultOfOneLockOrOneProcessExcusesNobodyElse) {
  const auto history = [](const Event& fault) {
    History h;
    h.process(1).asks("a").is_granted(1).looks(true);
    h.note(fault);
    h.process(2).asks("a").is_granted(2).looks(true);
    h.process(1).looks(true);
    return h;
  };
  const Event struck{.kind = Kind::struck, .until = TimePoint(2h), .word = "promoted"};
  for (const auto& [lock, process, excused] : std::vector<std::tuple<std::string, int, bool>>{
           {"a", 0, true}, {"b", 0, false}, {"", 1, true}, {"", 2, false}, {"a", 1, true}, {"b", 1, false}}) {
    Event fault = struck;
    fault.lock = lock;
    fault.subject = process;
    EXPECT_EQ(broken(history(fault), of_failovers), excused ? nothing : Broken{Rule::exclusion}) << lock << process;
  }
}

// The fault takes the lock from a holder before that is told of its grant.
TEST(HoleTimes, AHolderThatLearnsOfItsGrantAfterTheNextIsExcused) {
  const auto history = [](const std::string& fault) {
    History h;
    h.process(1).asks("a");
    h.strikes(fault, 10ms).heals(fault);
    h.process(2).asks("a").is_granted(2).looks(true);
    h.process(1).is_granted(1).looks(true);
    h.process(2).looks(true);
    return h;
  };
  EXPECT_EQ(broken(history("promoted"), of_failovers), Broken{Rule::growing_tokens});
  EXPECT_TRUE(broken(history("slow"), of_failovers).contains(Rule::exclusion));
}

// A permit that was taken away is another's, though its holder believes in it.
TEST(HoleTimes, HoldersWhosePermitWasTakenDoNotCountAgainstARelease) {
  const auto history = [](const std::string& fault) {
    const Event semaphore{.lock = "a", .lock_kind = LockKind::semaphore, .permits = 2};
    History h;
    h.process(1).asks(semaphore).is_granted(1).looks(true);
    h.process(2).asks(semaphore).is_granted(2).looks(true);
    h.strikes(fault, 10ms).heals(fault);
    h.process(3).asks(semaphore).is_granted(3).looks(true).releases().has_released();
    h.process(1).looks(true);
    h.process(2).looks(true);
    return h;
  };
  Rules rules = of_failovers;
  rules.hole.rules.insert(Rule::honest_release);
  EXPECT_EQ(broken(history("promoted"), rules), nothing);
  EXPECT_TRUE(broken(history("slow"), rules).contains(Rule::honest_release));
}

// Two locks may suffer at once: the end of one fault is not that of the other.
TEST(HoleTimes, AFaultOfALockEndsWithTheHealingOfThatLock) {
  const auto history = [](const std::string& healed) {
    History h;
    h.note({.kind = Kind::struck, .lock = "a", .word = "promoted"});
    h.note({.kind = Kind::healed, .lock = healed, .word = "promoted"});
    h.process(1).asks("a").is_granted(1).looks(true);
    h.process(2).asks("a").is_granted(2).looks(true);
    h.process(1).looks(true);
    return h;
  };
  EXPECT_EQ(broken(history("b"), of_failovers), nothing);
  EXPECT_EQ(broken(history("a"), of_failovers), Broken{Rule::exclusion});
}

// An overlap that is excused hides none that is not.
TEST(HoleTimes, AShorterOverlapThatIsNotExcusedIsFound) {
  History h;
  h.process(1).asks("a").is_granted(1).looks(true);
  h.strikes("terminated", 10ms).heals("terminated");
  h.process(2).asks("a").is_granted(2).looks(true);
  h.process(3).asks("a").is_granted(3).looks(true);
  h.process(2).looks(true);
  h.process(1).looks(true);
  EXPECT_EQ(words(h, of_sessions), "process 2 found lock a held after process 3 had been granted it\n");
}

TEST(HoleTimes, NewsOfATokenThatComesLateBecauseOfTheFaultIsExcused) {
  const auto history = [](const std::string& fault) {
    History h;
    h.process(1).asks("a");
    h.strikes(fault, 10ms).heals(fault);
    h.process(2).asks("a").is_granted(2).looks(true).releases().has_released();
    h.process(1).is_granted(1).looks(true);
    return h;
  };
  EXPECT_EQ(broken(history("terminated"), of_sessions), nothing);
  EXPECT_EQ(broken(history("slow"), of_sessions), Broken{Rule::growing_tokens});
}

}  // namespace
}  // namespace dlock::torture

// Each acquire ends once, in time and for the reason that is given; each release ends.
#include "tests/unit/torture/checker/history_builder.hpp"

namespace dlock::torture {
namespace {

TEST(Deadlines, LeaveTheSlack) {
  for (const bool late : {false, true}) {
    History h;
    h.process(1).asks("a", 5s).after(late ? 7001ms : 7s).is_denied("timed out");
    EXPECT_EQ(broken(h), late ? Broken{Rule::deadlines} : nothing) << words(h);
  }
}

TEST(Deadlines, AreForGrantsAsWell) {
  for (const bool late : {false, true}) {
    History h;
    h.process(1).asks("a", 5s).after(late ? 7001ms : 7s).is_granted(1);
    EXPECT_EQ(broken(h), late ? Broken{Rule::deadlines} : nothing) << words(h);
  }
}

TEST(Deadlines, ATryHasOneToo) {
  for (const bool late : {false, true}) {
    History h;
    h.process(1).asks("a", 0s).after(late ? 2001ms : 2s).is_denied("busy");
    EXPECT_EQ(broken(h), late ? Broken{Rule::deadlines} : nothing) << words(h);
  }
}

TEST(Deadlines, PassForAcquiresThatNeverEnd) {
  for (const bool late : {false, true}) {
    History h;
    h.process(1).asks("a", 5s);
    h.process(2).after(late ? 7001ms : 7s).asks("b", 1s);
    EXPECT_EQ(broken(h), late ? Broken{Rule::deadlines} : nothing);
    EXPECT_EQ(words(h), late ? "acquire 1 of process 1 ended 2.001 s late, or has not ended yet\n" : "");
  }
}

TEST(Deadlines, AnUnlimitedWaitHasNone) {
  for (const bool limited : {false, true}) {
    History h;
    h.process(1).asks("b").is_granted(1).looks(true);
    limited ? h.process(2).asks("b", 1h) : h.process(2).asks("b");
    h.process(1).after(100h).looks(true);
    EXPECT_EQ(broken(h), limited ? Broken{Rule::deadlines} : nothing) << words(h);
  }
}

TEST(Deadlines, ACancelledWaitEndsThen) {
  for (const bool late : {false, true}) {
    History h;
    h.process(1).asks("a").after(1s).cancels().after(late ? 2001ms : 2s).is_denied("cancelled");
    EXPECT_EQ(broken(h), late ? Broken{Rule::deadlines} : nothing) << words(h);
  }
}

TEST(Deadlines, TheFirstCancellationCounts) {
  History h;
  h.process(1).asks("a").cancels().after(2s).cancels().after(1s).is_denied("cancelled");
  EXPECT_EQ(broken(h), Broken{Rule::deadlines});
}

TEST(Deadlines, WaitForThoseWhoStandStill) {
  for (const bool stopped : {true, false}) {
    History h;
    h.process(1).asks("a", 5s);
    if (stopped) h.stops(1);
    h.after(30s).resumes(1);
    h.process(1).is_denied("timed out");
    EXPECT_EQ(broken(h), stopped ? nothing : Broken{Rule::deadlines}) << words(h);
  }
}

// It is noted before it is asked, and the wait is counted from when it is asked.
TEST(Deadlines, WaitForThoseWhoStoodStillWhenTheyWereAboutToAsk) {
  for (const bool stopped : {true, false}) {
    History h;
    h.process(1).asks("a", 5s);
    if (stopped) h.stops(1);
    h.after(4s).resumes(1);
    h.process(1).after(5s).is_denied("timed out");
    EXPECT_EQ(broken(h), stopped ? nothing : Broken{Rule::deadlines}) << words(h);
  }
}

TEST(Deadlines, AreNotForThoseWhoAreNoMore) {
  for (const bool killed : {true, false}) {
    History h;
    h.process(1).asks("a", 5s);
    if (killed) h.kills(1);
    h.process(2).after(1h).asks("b", 1s);
    EXPECT_EQ(broken(h), killed ? nothing : Broken{Rule::deadlines}) << words(h);
  }
}

TEST(Deadlines, NoAcquireIsForgottenByAProcessThatEndsInGoodOrder) {
  for (const bool forgotten : {false, true}) {
    History h;
    h.process(1).asks("a");
    if (!forgotten) h.process(1).is_denied("closed");
    h.process(1).ends();
    EXPECT_EQ(broken(h), forgotten ? Broken{Rule::deadlines} : nothing);
    EXPECT_EQ(words(h), forgotten ? "acquire 1 of process 1 never ended, though its process did\n" : "");
  }
}

TEST(Deadlines, NoneTimesOutBefore) {
  for (const bool early : {false, true}) {
    History h;
    h.process(1).asks("a", 5s).after(early ? 4980ms : 4990ms).is_denied("timed out");
    EXPECT_EQ(broken(h), early ? Broken{Rule::deadlines} : nothing);
    EXPECT_EQ(words(h), early ? "acquire 1 of process 1 timed out before its deadline\n" : "");
  }
}

TEST(Deadlines, AnUnlimitedWaitNeverTimesOut) {
  for (const char* why : {"unavailable", "timed out"}) {
    History h;
    h.process(1).asks("a").after(1h).is_denied(why);
    EXPECT_EQ(broken(h), why == std::string("timed out") ? Broken{Rule::deadlines} : nothing) << words(h);
  }
}

TEST(Deadlines, NoneIsCancelledUnasked) {
  for (const bool asked : {true, false}) {
    History h;
    h.process(1).asks("a", 5s);
    if (asked) h.process(1).cancels();
    h.process(1).is_denied("cancelled");
    EXPECT_EQ(broken(h), asked ? nothing : Broken{Rule::deadlines}) << words(h);
  }
}

TEST(Deadlines, AnAcquireEndsOnce) {
  History granted;
  granted.process(1).asks("a", 5s).is_granted(1).is_granted(2);
  EXPECT_EQ(broken(granted), Broken{Rule::deadlines});
  EXPECT_EQ(words(granted), "acquire 1 of process 1 was granted twice\n");
  History denied;
  denied.process(1).asks("a", 5s).is_denied("busy").is_denied("busy");
  EXPECT_EQ(broken(denied), Broken{Rule::deadlines});
  History both;
  both.process(1).asks("a", 5s).is_granted(1).is_denied("busy");
  EXPECT_EQ(broken(both), Broken{Rule::deadlines});
  History again;
  again.process(1).asks("a", 5s).is_denied("busy").asks("a", 5s).is_denied("busy");
  EXPECT_EQ(broken(again), nothing) << words(again);
}

TEST(Deadlines, AReleaseHasATimeToEnd) {
  for (const bool late : {false, true}) {
    History h;
    h.process(1).asks("a", 5s).is_granted(1).releases().after(late ? 5001ms : 5s).could_not_release();
    EXPECT_EQ(broken(h), late ? Broken{Rule::deadlines} : nothing);
    EXPECT_EQ(words(h), late ? "the release of acquire 1 of process 1 took 5.001 s, or has not ended yet\n" : "");
  }
}

TEST(Deadlines, AReleaseThatNeverEndsIsFound) {
  for (const bool killed : {true, false}) {
    History h;
    h.process(1).asks("a", 5s).is_granted(1).releases();
    if (killed) h.kills(1);
    h.process(2).after(6s).asks("b", 1s);
    EXPECT_EQ(broken(h), killed ? nothing : Broken{Rule::deadlines}) << words(h);
  }
}

TEST(Deadlines, AReleaseWaitsForThoseWhoStandStill) {
  for (const bool stopped : {true, false}) {
    History h;
    h.process(1).asks("a", 5s).is_granted(1).releases();
    if (stopped) h.stops(1);
    h.after(1min).resumes(1);
    h.process(1).has_released();
    EXPECT_EQ(broken(h), stopped ? nothing : Broken{Rule::deadlines}) << words(h);
  }
}

}  // namespace
}  // namespace dlock::torture

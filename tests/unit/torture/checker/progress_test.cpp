// A lock that is free goes to those who wait for it: some time after everything was healed, and at once in sound times.
#include "tests/unit/torture/checker/history_builder.hpp"

namespace dlock::torture {
namespace {

TEST(Progress, ALockIsNotFreeForeverOnceAllIsHealed) {
  for (const bool late : {false, true}) {
    History h;
    h.heals();
    h.process(1).at_once().asks("a").after(late ? 15001ms : 15s).is_granted(1);
    EXPECT_EQ(broken(h), late ? Broken{Rule::progress} : nothing);
    EXPECT_EQ(words(h), late ? "lock a was free for 15.001 s though process 1 waited for it\n" : "");
  }
}

TEST(Progress, IsNotPromisedBeforeAllIsHealed) {
  for (const char* what : {"network", "everything"}) {
    History h;
    h.heals(what);
    h.process(1).asks("a").after(16s).is_granted(1);
    EXPECT_EQ(broken(h), what == everything ? Broken{Rule::progress} : nothing) << words(h);
  }
}

TEST(Progress, TheTimeBeforeTheHealingDoesNotCount) {
  for (const bool late : {false, true}) {
    History h;
    h.process(1).asks("a");
    h.after(1h).heals();
    h.process(1).after(late ? 15001ms : 15s).is_granted(1);
    EXPECT_EQ(broken(h), late ? Broken{Rule::progress} : nothing) << words(h);
  }
}

TEST(Progress, WhoeverWaitsInVainForALockThatIsHeldWaitsRightly) {
  for (const bool held : {true, false}) {
    History h;
    h.process(1).asks("a").is_granted(1).looks(true);
    h.heals();
    if (!held) h.process(1).releases().has_released();
    h.process(2).asks("a");
    h.process(1).after(1min).asks("b", 0s).is_denied("busy");
    EXPECT_EQ(broken(h), held ? nothing : Broken{Rule::progress}) << words(h);
  }
}

TEST(Progress, NobodyHasToWaitForAProcessThatIsNoMore) {
  for (const char* what : {"killed", "ended", "there"}) {
    History h;
    h.process(1).asks("a").is_granted(1).looks(true);
    h.heals();
    if (what == std::string("killed")) h.kills(1);
    if (what == std::string("ended")) h.process(1).ends();
    h.process(2).asks("a").after(20s).is_granted(2).looks(true);
    EXPECT_EQ(broken(h), what == std::string("there") ? nothing : Broken{Rule::progress}) << what << words(h);
  }
}

// Nothing says how the first one ended; but a later one was held, so its end is the one that counts.
TEST(Progress, AHolderOfWhomNothingMoreIsHeardHoldsNoLongerThanTheNext) {
  for (const bool next : {true, false}) {
    History h = sound_times();
    h.process(1).asks("a").is_granted(1).looks(true);
    if (next) h.process(2).asks("a").is_granted(2).looks(true).releases().has_released();
    h.process(3).asks("a");
    h.process(4).after(30s).asks("b", 0s).is_denied("busy");
    EXPECT_EQ(broken(h), next ? Broken{Rule::progress} : nothing) << words(h);
  }
}

TEST(Progress, EveryWaiterMayLeaveForAReasonOfItsOwn) {
  const auto leaving = [](const std::string& why) {
    History h = sound_times();
    auto& p = h.process(1);
    why == "its deadline" ? p.asks("a", 500ms) : p.asks("a");
    h.after(500ms);
    if (why == "a cancellation") p.cancels();
    if (why == "a denial") p.is_denied("unavailable");
    if (why == "a kill") h.kills(1);
    if (why == "its end") p.ends();
    h.process(2).after(1900ms).asks("b", 0s).is_denied("busy");
    if (why == "its deadline") p.is_denied("timed out");
    if (why == "a cancellation") p.is_denied("cancelled");
    return broken(h, {.without = {Rule::deadlines}});
  };
  for (const char* why : {"its deadline", "a cancellation", "a denial", "a kill", "its end"}) {
    EXPECT_EQ(leaving(why), nothing) << why;
  }
  EXPECT_EQ(leaving("nothing"), Broken{Rule::hand_over});
}

TEST(Progress, ANewProcessGetsTheLock) {
  for (const bool got : {true, false}) {
    History h;
    h.heals().probes("a", got);
    EXPECT_EQ(broken(h), got ? nothing : Broken{Rule::progress});
    EXPECT_EQ(words(h), got ? "" : "a new process did not get lock a\n");
  }
}

TEST(HandOver, IsQuickInSoundTimes) {
  for (const bool late : {false, true}) {
    History h = sound_times();
    h.process(1).asks("a").is_granted(1).looks(true);
    h.process(2).asks("a");
    h.process(1).releases().has_released();
    h.process(2).after(late ? 1001ms : 1s).is_granted(2);
    EXPECT_EQ(broken(h), late ? Broken{Rule::hand_over} : nothing);
    EXPECT_EQ(words(h), late ? "lock a was free for 1.001 s though process 2 waited for it\n" : "");
  }
}

TEST(HandOver, IsQuickFromTheWaitOnWhereTheLockWasFree) {
  for (const bool late : {false, true}) {
    History h = sound_times();
    h.process(1).asks("a").after(late ? 1001ms : 1s).is_granted(1);
    EXPECT_EQ(broken(h), late ? Broken{Rule::hand_over} : nothing) << words(h);
  }
}

TEST(HandOver, MayBeSlowBeforeTimesAreSound) {
  for (const bool late : {false, true}) {
    History h;
    h.heals();
    h.process(1).asks("a").is_granted(1).looks(true);
    h.process(2).after(15s).asks("a");
    h.process(1).releases().has_released();
    h.process(2).after(late ? 10s : 5s).is_granted(2);
    EXPECT_EQ(broken(h), late ? Broken{Rule::hand_over} : nothing) << words(h);
  }
}

// Its release failed, or found that it was lost: until its lease is over, the service may keep the lock for it.
TEST(HandOver, MayBeSlowWhereNobodyKnowsWhetherTheLockIsFree) {
  for (const std::string end : {"released", "not ours", "not released", "lost", "killed"}) {
    for (const auto wait : {900ms, 10000ms, 15999ms}) {
      History h = sound_times();
      auto& holder = h.process(1).asks("a").is_granted(1).looks(true);
      h.process(2).asks("a");
      if (end == "lost") holder.is_told_of_loss();
      if (end == "killed") h.kills(1);
      if (end.ends_with("released") || end == "not ours") holder.releases();
      if (end == "released") holder.has_released();
      if (end == "not ours") holder.has_released(false);
      if (end == "not released") holder.could_not_release();
      h.process(2).after(wait).is_granted(2);
      const Rules rules{.recovery = 15s};
      const bool slow = wait > 1s && end == "released";
      EXPECT_EQ(broken(h, rules).contains(Rule::hand_over), slow && wait <= 15s) << end;
      EXPECT_EQ(broken(h, rules).contains(Rule::progress), wait > 15s) << end;
    }
  }
}

// A waiter comes when the lock has long been free; how its holder gave it up does not matter any more.
TEST(HandOver, IsQuickOnceTheLeaseOfTheLastHolderIsOver) {
  for (const auto later : {10s, 20s}) {
    History h = sound_times();
    h.process(1).asks("a").is_granted(1).looks(true).releases().could_not_release();
    h.process(2).after(later).asks("a").after(2s).is_granted(2);
    EXPECT_EQ(broken(h), later == 10s ? nothing : Broken{Rule::hand_over}) << words(h);
  }
}

TEST(HandOver, GoesToAnyWaiterAndShowsTheOneThatWaitedLongest) {
  History h = sound_times();
  h.process(1).asks("a").is_granted(1).looks(true);
  h.process(2).asks("a");
  h.process(3).asks("a");
  h.process(1).releases().has_released();
  h.process(3).after(900ms).is_granted(2).releases().has_released();
  EXPECT_EQ(broken(h), nothing) << words(h);
  h.process(4).after(1100ms).asks("a").at_once().is_granted(3);
  EXPECT_EQ(words(h), "lock a was free for 1.100 s though process 2 waited for it\n");
}

// Each of them waits for less than a hand-over may take, but the lock is free all the while.
TEST(HandOver, IsNotExcusedByWaitersThatComeAndGo) {
  for (const bool gap : {false, true}) {
    History h = sound_times();
    h.process(1).asks("a", 600ms);
    h.process(2).after(gap ? 601ms : 500ms).asks("a", 600ms);
    h.process(1).after(100ms).is_denied("timed out");
    h.process(2).after(gap ? 499ms : 500ms).is_denied("timed out");
    EXPECT_EQ(broken(h), gap ? nothing : Broken{Rule::hand_over}) << words(h);
  }
}

// At one instant the lock is released and granted anew, in whatever order that was noted.
TEST(HandOver, AtOneInstantLeavesNothingFree) {
  for (const bool first : {true, false}) {
    History h = sound_times();
    h.process(1).asks("a").is_granted(1).looks(true);
    h.process(2).asks("a");
    h.process(1).releases();
    if (!first) h.process(1).has_released();
    h.at_once().process(2).is_granted(2);
    if (first) h.process(1).at_once().has_released();
    h.process(2).after(1min).releases();
    EXPECT_EQ(broken(h), nothing) << words(h);
    EXPECT_EQ(check(h.events(), {}).counts.longest_stall, 1ms);  // the very first wait
  }
}

// It waits for nothing any more, and holds nothing.
TEST(NoCrash, NoProcessEndsByItself) {
  for (const bool crashes : {false, true}) {
    History h;
    h.process(1).asks("a").is_granted(1).looks(true).asks("b", 1s);
    crashes ? h.crashes(1) : h.kills(1);
    h.process(2).after(10s).asks("a").is_granted(2).looks(true);
    EXPECT_EQ(broken(h), crashes ? Broken{Rule::no_crash} : nothing);
    EXPECT_EQ(words(h), crashes ? "process 1 ended by itself: status 134\n" : "");
  }
}

TEST(NoResidue, NothingMayBeLeft) {
  for (const bool left : {false, true}) {
    History h;
    h.heals();
    if (left) h.leaves("key dlock:{a}");
    EXPECT_EQ(broken(h), left ? Broken{Rule::no_residue} : nothing);
    EXPECT_EQ(words(h), left ? "key dlock:{a}\n" : "");
  }
}

}  // namespace
}  // namespace dlock::torture

// No two acquires of a lock held it at one instant.
#include "tests/unit/torture/checker/history_builder.hpp"

namespace dlock::torture {
namespace {

TEST(Exclusion, TurnsAreClean) {
  History h;
  h.process(1).asks("a").is_granted(1).looks(true).releases().has_released();
  h.process(2).asks("a").is_granted(2).looks(true).releases().has_released();
  EXPECT_EQ(broken(h), nothing) << words(h);
}

TEST(Exclusion, ALookThatFindsItHeldAfterAnotherGrantIsTwoHolders) {
  History h;
  h.process(1).asks("a").is_granted(1);
  h.process(2).asks("a").is_granted(2).looks(true);
  h.process(1).looks(true);
  EXPECT_EQ(broken(h), Broken{Rule::exclusion});
  EXPECT_EQ(words(h), "process 1 found lock a held after process 2 had been granted it\n");
}

TEST(Exclusion, ALookThatFindsItHeldBeforeTheOtherGrantIsClean) {
  History h;
  h.process(1).asks("a").is_granted(1);
  h.process(2).asks("a");
  h.process(1).looks(true);
  h.process(2).is_granted(2).looks(true);
  EXPECT_EQ(broken(h), nothing) << words(h);
}

TEST(Exclusion, OfOtherLocksIsNoneOfItsBusiness) {
  History h;
  h.process(1).asks("a").is_granted(1);
  h.process(2).asks("b").is_granted(2).looks(true);
  h.process(1).looks(true);
  EXPECT_EQ(broken(h), nothing) << words(h);
}

TEST(Exclusion, OneProcessMayNotHoldItTwiceEither) {
  History h;
  h.process(1).asks("a").is_granted(1).asks("a").is_granted(2).looks(true).of_acquire(1).looks(true);
  EXPECT_EQ(broken(h), Broken{Rule::exclusion});
}

TEST(Exclusion, TheBelieverOfLongAgoIsNotForgotten) {
  History h;
  h.process(1).asks("a").is_granted(1);
  for (int other = 2; other < 6; ++other) {
    h.process(other).asks("a").is_granted(static_cast<std::uint64_t>(other)).looks(true).releases().has_released();
  }
  EXPECT_EQ(broken(h), nothing) << words(h);
  h.process(1).looks(true);
  EXPECT_EQ(broken(h), Broken{Rule::exclusion});
  EXPECT_EQ(check(h.events(), {}).found.at(Rule::exclusion), 4U);  // with each of the others
}

// The news of the grant came when its lease had run out: it was never held.
TEST(Exclusion, AStaleGrantIsNotHeld) {
  History h;
  h.process(1).asks("a");
  h.process(2).asks("a").is_granted(2);
  h.process(1).is_granted(1, -1ms).looks(false);
  h.process(2).looks(true);
  EXPECT_EQ(broken(h), nothing) << words(h);
}

TEST(Exclusion, AStaleGrantThatIsFoundHeldIsTwoHolders) {
  History h;
  h.process(1).asks("a");
  h.process(2).asks("a").is_granted(1);
  h.process(1).is_granted(2, -1ms).looks(true);
  h.process(2).looks(true);
  EXPECT_EQ(broken(h), Broken{Rule::exclusion});
}

// Its session ended between the grant and the note of it, while its lease would have lasted.
TEST(Exclusion, AGrantThatWasLostBeforeItWasLookedAtIsNotSurelyHeld) {
  History h;
  h.process(1).asks("a");
  h.process(2).asks("a").is_granted(2);
  h.process(1).is_granted(1).is_told_of_loss().looks(false);
  h.process(2).looks(true);
  EXPECT_EQ(broken(h), nothing) << words(h);
}

TEST(Exclusion, AGrantThatWasReleasedAsOursWasHeld) {
  History h;
  h.process(1).asks("a");
  h.process(2).asks("a").is_granted(1);
  h.process(1).is_granted(2).releases().has_released();
  h.process(2).looks(true);
  EXPECT_EQ(broken(h), Broken{Rule::exclusion});
}

TEST(Exclusion, AtOneInstantWhatWasNotedFirstComesFirst) {
  History clean;
  clean.process(1).asks("a").is_granted(1).looks(true);
  clean.process(2).asks("a");
  clean.process(1).looks(true);
  clean.process(2).at_once().is_granted(2).looks(true);
  EXPECT_EQ(broken(clean), nothing) << words(clean);

  History bad;
  bad.process(1).asks("a").is_granted(1).looks(true);
  bad.process(2).asks("a").is_granted(2);
  bad.process(1).at_once().looks(true);
  bad.process(2).looks(true);
  EXPECT_EQ(broken(bad), Broken{Rule::exclusion});
}

TEST(Exclusion, APausedProcessThatLooksInVainIsClean) {
  History h;
  h.process(1).asks("a").is_granted(1, 2s).looks(true);
  h.stops(1);
  h.process(2).asks("a").after(3s).is_granted(2).looks(true).releases().has_released();
  h.resumes(1);
  h.process(1).looks(false).is_told_of_loss();
  EXPECT_EQ(broken(h), nothing) << words(h);
}

TEST(Exclusion, APausedProcessThatGoesOnBelievingIsNot) {
  History h;
  h.process(1).asks("a").is_granted(1, 2s).looks(true);
  h.stops(1);
  h.process(2).asks("a").after(3s).is_granted(2).looks(true).releases().has_released();
  h.resumes(1);
  h.process(1).looks(true);
  EXPECT_EQ(broken(h), Broken{Rule::exclusion});
}

TEST(Exclusion, AKilledProcessBelievesNothing) {
  History h;
  h.process(1).asks("a").is_granted(1).looks(true);
  h.kills(1);
  h.process(2).asks("a").is_granted(2).looks(true);
  EXPECT_EQ(broken(h), nothing) << words(h);
}

}  // namespace
}  // namespace dlock::torture

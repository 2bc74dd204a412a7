// Tokens are granted once, grow, and keep old writers out.
#include "tests/unit/torture/checker/history_builder.hpp"

namespace dlock::torture {
namespace {

TEST(UniqueTokens, NoneIsGrantedTwice) {
  History h;
  h.process(1).asks("a").is_granted(7).looks(true).releases().has_released();
  h.process(2).asks("a").is_granted(7).looks(true);
  EXPECT_EQ(broken(h), Broken{Rule::unique_tokens});
  EXPECT_EQ(words(h), "token 7 was granted twice\n");
}

TEST(UniqueTokens, LocksHaveTheirOwn) {
  History h;
  h.process(1).asks("a").is_granted(7).looks(true).releases().has_released();
  h.process(2).asks("b").is_granted(7).looks(true);
  EXPECT_EQ(broken(h), nothing) << words(h);
}

TEST(UniqueTokens, AreNoneOfTwoGrantsThatCameLate) {
  History h;
  h.process(1).asks("a").is_granted(7, -1ms);
  h.process(2).asks("a").is_granted(7, -1ms);
  EXPECT_EQ(broken(h), Broken{Rule::unique_tokens});
}

TEST(UniqueTokens, EveryGrantHasOne) {
  History h;
  h.process(1).asks("a").is_granted(0).looks(true);
  EXPECT_EQ(broken(h), Broken{Rule::unique_tokens});
  EXPECT_EQ(words(h), "process 1 was granted the lock without a token\n");
}

TEST(GrowingTokens, MayLeaveGaps) {
  History h;
  h.process(1).asks("a").is_granted(7).looks(true).releases().has_released();
  h.process(2).asks("a").is_granted(1000).looks(true);
  EXPECT_EQ(broken(h), nothing) << words(h);
}

TEST(GrowingTokens, NeverFall) {
  History h;
  h.process(1).asks("a").is_granted(7).looks(true).releases().has_released();
  h.process(2).asks("a").is_granted(6).looks(true);
  EXPECT_EQ(broken(h), Broken{Rule::growing_tokens});
  EXPECT_EQ(words(h), "token 6 was granted after token 7\n");
}

TEST(GrowingTokens, AreComparedWithTheGreatestAndNotOnlyTheLast) {
  History h;
  h.process(1).asks("a").is_granted(7).looks(true).releases().has_released();
  h.process(1).asks("a").is_granted(3, -1ms).looks(false).releases().has_released(false);
  h.process(1).asks("a").is_granted(5).looks(true).releases().has_released();
  EXPECT_EQ(broken(h), Broken{Rule::growing_tokens});
  EXPECT_EQ(words(h), "token 5 was granted after token 7\n");
}

// News of a grant may come when its lease is over, and the lock has been granted anew.
TEST(GrowingTokens, AStaleGrantMayComeLate) {
  History h;
  h.process(1).asks("a");
  h.process(2).asks("a").is_granted(2).looks(true).releases().has_released();
  h.process(1).is_granted(1, -1ms).looks(false).releases().has_released(false);
  EXPECT_EQ(broken(h), nothing) << words(h);
}

TEST(GrowingTokens, AGrantThatIsHeldMayNotComeLate) {
  History h;
  h.process(1).asks("a");
  h.process(2).asks("a").is_granted(2).looks(true).releases().has_released();
  h.process(1).is_granted(1).looks(true).releases().has_released();
  EXPECT_EQ(broken(h), Broken{Rule::growing_tokens});
}

TEST(GrowingTokens, NorOneThatIsOnlyReleasedAsOurs) {
  History h;
  h.process(1).asks("a");
  h.process(2).asks("a").is_granted(2).looks(true).releases().has_released();
  h.process(1).is_granted(1).releases().has_released();
  EXPECT_EQ(broken(h), Broken{Rule::growing_tokens});
}

// The lease would have lasted, but the session had ended before anybody looked.
TEST(GrowingTokens, AGrantThatWasLostUnseenMayComeLate) {
  History h;
  h.process(1).asks("a");
  h.process(2).asks("a").is_granted(2).looks(true).releases().has_released();
  h.process(1).is_granted(1).is_told_of_loss().looks(false).releases().has_released(false);
  EXPECT_EQ(broken(h), nothing) << words(h);
}

TEST(GrowingTokens, AtOneInstantTheOrderOfTheNotesCounts) {
  for (const bool grows : {true, false}) {
    History h;
    h.process(1).asks("a").is_granted(grows ? 1 : 2).looks(true).releases().has_released();
    h.process(2).asks("a");
    h.process(2).at_once().is_granted(grows ? 2 : 1).looks(true);
    EXPECT_EQ(broken(h), grows ? nothing : Broken{Rule::growing_tokens}) << words(h);
  }
}

TEST(Fencing, TakesNewerAndRefusesOlderWrites) {
  History h;
  h.serves("a", 1, true).serves("a", 1, true).serves("a", 3, true).serves("a", 2, false).serves("a", 3, true);
  EXPECT_EQ(broken(h), nothing) << words(h);
}

TEST(Fencing, NeverTakesAnOlderWrite) {
  History h;
  h.serves("a", 1, true).serves("a", 1, true).serves("a", 3, true).serves("a", 2, true).serves("a", 3, true);
  EXPECT_EQ(broken(h), Broken{Rule::fencing});
  EXPECT_EQ(words(h), "a write with token 2 was taken after one with token 3\n");
}

TEST(Fencing, NeverRefusesTheNewestWrite) {
  History h;
  h.serves("a", 1, true).serves("a", 1, false);
  EXPECT_EQ(broken(h), Broken{Rule::fencing});
  EXPECT_EQ(words(h), "a write with token 1 was refused, though none newer than 1 had been taken\n");
}

TEST(Fencing, AnOlderWriteThatWasTakenDoesNotCoverForAnother) {
  History h;
  h.serves("a", 3, true).serves("a", 1, true).serves("a", 2, true);
  EXPECT_EQ(words(h),
            "a write with token 1 was taken after one with token 3\n"
            "a write with token 2 was taken after one with token 3\n");
}

TEST(Fencing, NeverRefusesTheFirstWrite) {
  History h;
  h.serves("a", 1, false);
  EXPECT_EQ(broken(h), Broken{Rule::fencing});
}

TEST(Fencing, LocksHaveTheirOwn) {
  History h;
  h.serves("a", 3, true).serves("b", 1, true);
  EXPECT_EQ(broken(h), nothing) << words(h);
}

}  // namespace
}  // namespace dlock::torture

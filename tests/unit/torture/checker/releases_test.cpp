// A release says "ours" only of what was ours until then.
#include "tests/unit/torture/checker/history_builder.hpp"

namespace dlock::torture {
namespace {

TEST(HonestRelease, SaysOursThoughSomebodyElseIsGrantedTheLockWhileItRuns) {
  History h;
  h.process(1).asks("a").is_granted(1).looks(true).releases();
  h.process(2).asks("a").is_granted(2).looks(true);
  h.process(1).has_released();
  EXPECT_EQ(broken(h), nothing) << words(h);
}

TEST(HonestRelease, DoesNotSayOursWhenSomebodyElseWasGrantedTheLockBefore) {
  History h;
  h.process(1).asks("a").is_granted(1).looks(true);
  h.process(2).asks("a").is_granted(2).looks(true);
  h.process(1).releases().has_released();
  EXPECT_EQ(broken(h), Broken{Rule::honest_release});
  EXPECT_EQ(words(h), "the release of process 1 said \"ours\", though process 2 had been granted the lock\n");
}

TEST(HonestRelease, SaysNotOursThen) {
  History h;
  h.process(1).asks("a").is_granted(1).looks(true);
  h.process(2).asks("a").is_granted(2).looks(true);
  h.process(1).releases().has_released(false);
  EXPECT_EQ(broken(h), nothing) << words(h);
}

TEST(HonestRelease, MayFailThen) {
  History h;
  h.process(1).asks("a").is_granted(1).looks(true);
  h.process(2).asks("a").is_granted(2).looks(true);
  h.process(1).releases().could_not_release();
  EXPECT_EQ(broken(h), nothing) << words(h);
}

// A lie though the news of the grant came when it was over, after that of the newer one.
TEST(HonestRelease, OfAStaleGrantDoesNotSayOurs) {
  for (const bool lie : {false, true}) {
    History h;
    h.process(1).asks("a");
    h.process(2).asks("a").is_granted(2).looks(true);
    h.process(1).is_granted(1, -1ms).releases().has_released(lie);
    EXPECT_EQ(broken(h), lie ? Broken{Rule::honest_release} : nothing) << words(h);
  }
}

// Where tokens fall, that is said once, and not of every release after it.
TEST(HonestRelease, IsNotJudgedByTokensThatFellBefore) {
  History h;
  h.process(1).asks("a").is_granted(100).looks(true).releases().has_released();
  h.process(2).asks("a").is_granted(1).looks(true).releases().has_released();
  EXPECT_EQ(broken(h), Broken{Rule::growing_tokens}) << words(h);
  EXPECT_EQ(broken(h, {.without = {Rule::growing_tokens}}), nothing) << words(h);
}

TEST(HonestRelease, DoesNotSayOursOfWhatWasLost) {
  for (const bool lie : {false, true}) {
    History h;
    h.process(1).asks("a").is_granted(1).looks(true).is_told_of_loss().releases().has_released(lie);
    EXPECT_EQ(broken(h), lie ? Broken{Rule::honest_release} : nothing) << words(h);
  }
}

// The note of the loss may come late; but a lease is either lost or released.
TEST(HonestRelease, DoesNotSayOursOfWhatIsLostWhileItRuns) {
  for (const bool lie : {false, true}) {
    History h;
    h.process(1).asks("a").is_granted(1).looks(true).releases().has_released(lie).is_told_of_loss();
    EXPECT_EQ(broken(h), lie ? Broken{Rule::honest_release} : nothing) << words(h);
  }
}

TEST(HonestRelease, SaysOursOnce) {
  for (const bool lie : {false, true}) {
    History h;
    h.process(1).asks("a").is_granted(1).looks(true).releases().has_released().releases().has_released(lie);
    EXPECT_EQ(broken(h), lie ? Broken{Rule::honest_release} : nothing) << words(h);
  }
}

TEST(HonestRelease, NeverSaysOursAfterNotOurs) {
  History h;
  h.process(1).asks("a").is_granted(1).looks(true).releases().has_released(false).releases().has_released();
  EXPECT_EQ(broken(h), Broken{Rule::honest_release});
  EXPECT_EQ(words(h), "process 1 released the same grant again, and was told \"ours\"\n");
}

TEST(HonestRelease, MaySayOursAfterOneThatFailed) {
  History h;
  h.process(1).asks("a").is_granted(1).looks(true).releases().could_not_release().releases().has_released();
  EXPECT_EQ(broken(h), nothing) << words(h);
}

}  // namespace
}  // namespace dlock::torture

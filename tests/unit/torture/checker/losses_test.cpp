// Who finds the lock not held is told of the loss, and never finds it held again.
#include "tests/unit/torture/checker/history_builder.hpp"

namespace dlock::torture {
namespace {

TEST(TimelyLoss, IsSignalledWithinTheSlack) {
  for (const bool late : {false, true}) {
    History h;
    h.process(1).asks("a").is_granted(1).looks(true).looks(false);
    h.process(1).after(late ? 501ms : 500ms).is_told_of_loss();
    EXPECT_EQ(broken(h), late ? Broken{Rule::timely_loss} : nothing) << words(h);
  }
}

TEST(TimelyLoss, IsSignalledAtAll) {
  for (const bool seen : {false, true}) {
    History h;
    h.process(1).asks("a").is_granted(1).looks(true).looks(!seen);
    h.process(2).after(1s).asks("b", 1s).is_denied("busy");
    EXPECT_EQ(broken(h), seen ? Broken{Rule::timely_loss} : nothing);
    EXPECT_EQ(words(h), seen ? "process 1 found the lock not held, and was never told of the loss\n" : "");
  }
}

TEST(TimelyLoss, MayBeSignalledBeforeAnybodyLooks) {
  History h;
  h.process(1).asks("a").is_granted(1).looks(true).is_told_of_loss().after(10s).looks(false);
  EXPECT_EQ(broken(h), nothing) << words(h);
}

// A lease of a fixed length ends by itself; that is a loss as well.
TEST(TimelyLoss, OfAFixedLeaseIsSignalledWhenItEnds) {
  for (const bool told : {true, false}) {
    History h;
    h.process(1).asks("a").is_granted(1, 1s).looks(true).after(1s).looks(false);
    if (told) h.process(1).is_told_of_loss();
    h.process(2).asks("a").is_granted(2).looks(true).after(1s).releases().has_released();
    EXPECT_EQ(broken(h), told ? nothing : Broken{Rule::timely_loss}) << words(h);
  }
}

TEST(TimelyLoss, IsNotOwedForWhatIsGivenBack) {
  for (const bool releases : {true, false}) {
    History h;
    h.process(1).asks("a").is_granted(1).looks(true);
    if (releases) h.process(1).releases();
    h.process(1).looks(false);
    if (releases) h.process(1).has_released();
    h.process(2).after(1s).asks("b", 1s).is_denied("busy");
    EXPECT_EQ(broken(h), releases ? nothing : Broken{Rule::timely_loss}) << words(h);
  }
}

// The loss of what was released right after the look is not signalled any more.
TEST(TimelyLoss, IsNotOwedOnceItIsGivenBack) {
  for (const auto held : {100ms, 600ms}) {
    History h;
    h.process(1).asks("a").is_granted(1).looks(true).looks(false).after(held).releases().has_released(false);
    h.process(2).after(10s).asks("b", 1s).is_denied("busy");
    EXPECT_EQ(broken(h), held == 100ms ? nothing : Broken{Rule::timely_loss}) << words(h);
  }
}

TEST(TimelyLoss, IsNotOwedToThoseWhoAreNoMore) {
  for (const char* what : {"killed", "ended", "there"}) {
    History h;
    h.process(1).asks("a").is_granted(1).looks(true).looks(false);
    if (what == std::string("killed")) h.kills(1);
    if (what == std::string("ended")) h.process(1).ends();
    h.process(2).after(10s).asks("b", 1s).is_denied("busy");
    EXPECT_EQ(broken(h), what == std::string("there") ? Broken{Rule::timely_loss} : nothing) << what << words(h);
  }
}

TEST(TimelyLoss, WaitsForThoseWhoStandStill) {
  for (const bool stopped : {true, false}) {
    History h;
    h.process(1).asks("a").is_granted(1).looks(true).looks(false);
    if (stopped) h.stops(1);
    h.after(5s).resumes(1);
    h.process(1).is_told_of_loss();
    EXPECT_EQ(broken(h), stopped ? nothing : Broken{Rule::timely_loss}) << words(h);
  }
}

// Two that stop it and one that lets it go on: it stood still once.
TEST(TimelyLoss, CountsOnePauseOnce) {
  for (const auto late : {400ms, 600ms}) {
    History h;
    h.process(1).asks("a").is_granted(1).looks(true).looks(false);
    h.at_once().stops(1).after(1s).stops(1).after(1s).resumes(1);
    h.process(1).after(late).is_told_of_loss();
    EXPECT_EQ(broken(h), late == 400ms ? nothing : Broken{Rule::timely_loss}) << words(h);
  }
}

// Of several pauses, those count that lie between the look and the signal, as far as they do.
TEST(TimelyLoss, CountsThePausesInBetweenOnly) {
  for (const auto late : {500ms, 502ms}) {
    History h;
    h.process(1).asks("a").is_granted(1).looks(true);
    h.stops(1).after(10s).resumes(1);
    h.process(1).at_once().looks(false);
    h.at_once().stops(1).after(1s).resumes(1).at_once().stops(1).after(1s).resumes(1);
    h.process(1).after(late).is_told_of_loss();
    h.stops(1).after(10s).resumes(1);
    EXPECT_EQ(broken(h), late == 500ms ? nothing : Broken{Rule::timely_loss}) << words(h);
  }
}

TEST(TimelyLoss, WhatWasFoundNotHeldIsNotHeldAgain) {
  for (const bool held : {false, true}) {
    History h;
    h.process(1).asks("a").is_granted(1).looks(true).looks(false).is_told_of_loss().looks(held);
    EXPECT_EQ(broken(h), held ? Broken{Rule::timely_loss} : nothing);
    EXPECT_EQ(words(h), held ? "process 1 found the lock held after it had lost it or given it back\n" : "");
  }
}

TEST(TimelyLoss, WhatWasSignalledAsLostIsNotHeld) {
  for (const bool held : {false, true}) {
    History h;
    h.process(1).asks("a").is_granted(1).looks(true).is_told_of_loss().looks(held);
    EXPECT_EQ(broken(h), held ? Broken{Rule::timely_loss} : nothing) << words(h);
  }
}

TEST(TimelyLoss, WhatWasGivenBackIsNotHeld) {
  for (const bool held : {false, true}) {
    History h;
    h.process(1).asks("a").is_granted(1).looks(true).releases().has_released().looks(held);
    EXPECT_EQ(broken(h), held ? Broken{Rule::timely_loss} : nothing) << words(h);
  }
}

TEST(TimelyLoss, IsSaidOnce) {
  for (const bool twice : {false, true}) {
    History h;
    h.process(1).asks("a").is_granted(1).looks(true).is_told_of_loss();
    if (twice) h.process(1).is_told_of_loss();
    EXPECT_EQ(broken(h), twice ? Broken{Rule::timely_loss} : nothing) << words(h);
  }
}

}  // namespace
}  // namespace dlock::torture

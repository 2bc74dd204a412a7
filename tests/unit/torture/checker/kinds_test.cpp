// What the rules say of read-write locks and semaphores.
#include "tests/unit/torture/checker/history_builder.hpp"

namespace dlock::torture {
namespace {

const Rules quick{.recovery = 15s};

// --- Exclusion -------------------------------------------------------------------------------------------------------

TEST(ExclusionOfKinds, ReadersMayHoldTogether) {
  History h;
  for (int reader = 1; reader <= 3; ++reader) {
    h.process(reader).asks(to_read).is_granted(static_cast<std::uint64_t>(reader)).looks(true);
  }
  for (int reader = 1; reader <= 3; ++reader) h.process(reader).looks(true).releases().has_released();
  EXPECT_EQ(broken(h), nothing) << words(h);
}

TEST(ExclusionOfKinds, AWriterIsAlone) {
  for (const bool first : {true, false}) {
    for (const bool other_reads : {true, false}) {
      History h;
      h.process(1).asks(first ? to_write : to_read).is_granted(1).looks(true);
      h.process(2).asks(first && other_reads ? to_read : to_write).is_granted(2).looks(true);
      h.process(1).looks(true);
      EXPECT_EQ(broken(h), Broken{Rule::exclusion});
      EXPECT_EQ(words(h), "process 1 found read-write lock a held after process 2 had been granted it\n");
    }
  }
}

TEST(ExclusionOfKinds, AWriterIsComparedWithEveryReader) {
  History h;
  h.process(1).asks(to_read).is_granted(1);
  h.process(2).asks(to_read).is_granted(2).looks(true).releases().has_released();
  h.process(3).asks(to_write).is_granted(3).looks(true);
  EXPECT_EQ(broken(h), nothing) << words(h);
  h.process(1).looks(true);
  EXPECT_EQ(broken(h), Broken{Rule::exclusion});
}

TEST(ExclusionOfKinds, PermitsAreNeverMoreThanThereAre) {
  for (const std::uint32_t permits : {2U, 3U}) {
    History h;
    for (int holder = 1; holder <= 3; ++holder) {
      h.process(holder).asks(one_of(permits)).is_granted(static_cast<std::uint64_t>(holder)).looks(true);
    }
    for (int holder = 1; holder <= 3; ++holder) h.process(holder).looks(true);
    EXPECT_EQ(broken(h), permits == 3 ? nothing : Broken{Rule::exclusion}) << words(h);
    EXPECT_EQ(words(h), permits == 3 ? "" : "process 3 was granted a permit of semaphore a while all 2 were held\n");
  }
}

TEST(ExclusionOfKinds, PermitsThatWereGivenBackAreThereAgain) {
  History h;
  h.process(1).asks(one_of(2)).is_granted(1).looks(true);
  h.process(2).asks(one_of(2)).is_granted(2).looks(true).releases().has_released();
  h.process(3).asks(one_of(2)).is_granted(3).looks(true);
  h.process(1).looks(true);
  EXPECT_EQ(broken(h), nothing) << words(h);
}

TEST(ExclusionOfKinds, AllWhoHoldPermitsHaveTheSameNumberOfThem) {
  History h;
  h.process(1).asks(one_of(2)).is_granted(1);
  h.process(2).asks(one_of(3)).is_granted(2).looks(true);
  h.process(1).looks(true);
  EXPECT_EQ(broken(h), Broken{Rule::exclusion});
  EXPECT_EQ(words(h), "process 2 was granted one of 3 permits of semaphore a while process 1 held one of 2\n");
}

TEST(ExclusionOfKinds, KindsHaveTheirNamesToThemselves) {
  History h;
  int process = 0;
  for (const Event& lock :
       {Event{.lock = "a"}, to_write, one_of(1), Event{.lock = "a", .lock_kind = LockKind::election}}) {
    h.process(++process).asks(lock).is_granted(7).looks(true);
    h.serves(lock, 7, true);
  }
  for (; process > 0; --process) h.process(process).looks(true);
  EXPECT_EQ(broken(h), nothing) << words(h);
}

TEST(ExclusionOfKinds, AnElectionIsALock) {
  const Event election{.lock = "a", .lock_kind = LockKind::election};
  History h;
  h.process(1).asks(election).is_granted(2);
  h.process(2).asks(election).is_granted(1).looks(true);
  h.process(1).looks(true);
  EXPECT_EQ(broken(h), (Broken{Rule::exclusion, Rule::growing_tokens}));
}

// --- Tokens ----------------------------------------------------------------------------------------------------------

TEST(TokensOfKinds, AWriterHasTheGreatestSoFarAndAReaderAGreaterOneThanEveryWriter) {
  struct Case {
    Event first;
    Event second;
    bool may_fall;
  };
  for (const Case& each :
       {Case{to_read, to_read, true}, Case{to_read, to_write, false}, Case{to_write, to_read, false},
        Case{to_write, to_write, false}, Case{one_of(2), one_of(2), true}, Case{one_of(1), one_of(1), true}}) {
    History h;
    h.process(1).asks(each.first).is_granted(2).looks(true).releases().has_released();
    h.process(2).asks(each.second).is_granted(1).looks(true).releases().has_released();
    EXPECT_EQ(broken(h), each.may_fall ? nothing : Broken{Rule::growing_tokens}) << words(h);
  }
}

TEST(TokensOfKinds, AReaderIsComparedWithTheGreatestOfAllWriters) {
  History h;
  h.process(1).asks(to_write).is_granted(5).looks(true).releases().has_released();
  h.process(1).asks(to_read).is_granted(9).looks(true).releases().has_released();
  h.process(2).asks(to_read).is_granted(7).looks(true).releases().has_released();
  EXPECT_EQ(broken(h), nothing) << words(h);
  h.process(2).asks(to_read).is_granted(4).looks(true).releases().has_released();
  EXPECT_EQ(words(h), "token 4 was granted after token 5\n");
}

TEST(TokensOfKinds, NoneIsGrantedTwice) {
  for (const Event& lock : {to_read, one_of(2)}) {
    History h;
    h.process(1).asks(lock).is_granted(1).looks(true);
    h.process(2).asks(lock).is_granted(1).looks(true);
    EXPECT_EQ(broken(h), Broken{Rule::unique_tokens});
  }
}

TEST(TokensOfKinds, AReadIsRefusedOnlyAfterANewerWrite) {
  History h;
  h.serves(to_write, 5, true).serves(to_read, 9, true).serves(to_read, 7, true).serves(to_write, 8, false);
  h.serves(to_read, 4, false).serves(to_write, 9, true).serves(to_read, 8, false);
  EXPECT_EQ(broken(h), nothing) << words(h);
}

TEST(TokensOfKinds, AStaleWriteUnderANewerReaderIsFound) {
  History h;
  h.serves(to_write, 9, true).serves(to_read, 11, true).serves(to_write, 10, true);
  EXPECT_EQ(words(h), "a write with token 10 was taken after a read with token 11\n");
}

TEST(TokensOfKinds, AStaleReadIsFound) {
  History h;
  h.serves(to_write, 9, true).serves(to_read, 8, true);
  EXPECT_EQ(words(h), "a read with token 8 was taken after a write with token 9\n");
}

TEST(TokensOfKinds, AReadIsNotRefusedForANewerReader) {
  History h;
  h.serves(to_read, 9, true).serves(to_read, 8, false);
  EXPECT_EQ(words(h), "the first read was refused\n");
}

// --- Releases --------------------------------------------------------------------------------------------------------

TEST(ReleasesOfKinds, AReaderMaySayOursAfterALaterReaderButNotAfterALaterWriter) {
  for (const bool writer : {true, false}) {
    History h;
    h.process(1).asks(to_read).is_granted(1).looks(true);
    h.process(2).asks(writer ? to_write : to_read).is_granted(2).looks(true);
    h.process(1).releases().has_released();
    EXPECT_EQ(broken(h), writer ? Broken{Rule::honest_release} : nothing) << words(h);
  }
}

TEST(ReleasesOfKinds, APermitThatAllOthersHoldIsNotOurs) {
  for (const std::uint32_t permits : {2U, 3U}) {
    History h;
    h.process(1).asks(one_of(permits)).is_granted(1).looks(true);
    h.process(2).asks(one_of(permits)).is_granted(2).looks(true);
    h.process(3).asks(one_of(permits)).is_granted(3);
    h.process(1).releases();
    h.process(2).looks(true);
    h.process(3).looks(true);
    h.process(1).has_released();
    EXPECT_EQ(broken(h), permits == 2 ? Broken{Rule::honest_release} : nothing) << words(h);
  }
}

// --- Progress --------------------------------------------------------------------------------------------------------

TEST(HandOverOfKinds, AllReadersBehindAWriterEnter) {
  for (const bool late : {false, true}) {
    History h = sound_times();
    h.process(1).asks(to_write).is_granted(1).looks(true);
    h.process(2).asks(to_read);
    h.process(3).asks(to_read);
    h.process(1).releases().has_released();
    h.process(2).is_granted(2).looks(true);
    h.process(3).after(late ? 1002ms : 900ms).is_granted(3);
    EXPECT_EQ(broken(h), late ? Broken{Rule::hand_over} : nothing) << words(h);
  }
}

TEST(HandOverOfKinds, AReaderWaitsRightlyWhileAWriterWaits) {
  for (const bool writer : {false, true}) {
    History h = sound_times();
    h.process(1).asks(to_read).is_granted(1).looks(true);
    if (writer) h.process(2).asks(to_write);
    h.process(3).asks(to_read);
    h.process(1).after(5s).looks(true);
    EXPECT_EQ(broken(h), writer ? nothing : Broken{Rule::hand_over}) << words(h);
  }
}

TEST(HandOverOfKinds, AWriterIsNotKeptOutByReadersWhoCameLater) {
  for (const bool later : {false, true}) {
    History h = sound_times();
    h.process(1).asks(to_read).is_granted(1).looks(true);
    h.process(2).asks(to_write);
    // Readers who asked soon after the writer may have been before it.
    h.process(3).after(later ? 1100ms : 500ms).asks(to_read).is_granted(2).looks(true);
    h.process(1).releases().has_released();
    h.process(3).after(1100ms).looks(true).releases().has_released();
    h.process(2).is_granted(3).looks(true);
    EXPECT_EQ(broken(h), later ? Broken{Rule::hand_over} : nothing) << words(h);
    if (!later) continue;
    EXPECT_NE(words(h).find("only readers who had come later held"), std::string::npos);
  }
}

TEST(HandOverOfKinds, ReadersThatRelieveEachOtherKeepItOut) {
  History h = sound_times();
  h.process(1).asks(to_read).is_granted(1).looks(true);
  h.process(2).asks(to_write);
  h.after(1100ms);
  for (int reader = 3; reader < 8; ++reader) {
    h.process(reader).asks(to_read).is_granted(static_cast<std::uint64_t>(reader)).looks(true);
    h.process(reader - (reader == 3 ? 2 : 1)).after(400ms).releases().has_released();
  }
  EXPECT_EQ(broken(h), Broken{Rule::hand_over}) << words(h);
}

// Readers who were in line before the second writer enter when the first one has left.
TEST(HandOverOfKinds, AnotherWriterBeforeItHasLetReadersIn) {
  for (const bool gives_up : {true, false}) {
    History h = sound_times();
    h.process(1).asks(to_read).is_granted(1).looks(true);
    auto& first = gives_up ? h.process(2).asks(to_write, 2100ms) : h.process(2).asks(to_write);
    h.process(3).asks(to_write);
    h.process(4).after(1500ms).asks(to_read);
    h.process(1).after(500ms).looks(true);
    if (gives_up) {
      first.after(120ms).is_denied("timed out");
    } else {
      h.process(1).releases().has_released();
      first.is_granted(2).looks(true).releases().has_released();
    }
    h.process(4).is_granted(3).looks(true);
    if (gives_up) h.process(1).releases().has_released();
    h.process(4).after(3s).looks(true).releases().has_released();
    h.process(3).is_granted(4).looks(true);
    EXPECT_EQ(broken(h), nothing) << words(h);
  }
}

TEST(HandOverOfKinds, APermitThatIsLeftGoesToAWaiter) {
  for (const std::uint32_t permits : {1U, 2U}) {
    History h = sound_times();
    h.process(1).asks(one_of(permits)).is_granted(1).looks(true);
    h.process(2).asks(one_of(permits)).after(1100ms).is_granted(2);
    h.process(1).releases().has_released();
    EXPECT_EQ(broken(h).contains(Rule::hand_over), permits == 2) << words(h);
  }
}

// Its permit may still be kept for it; but not where all permits have been out since.
TEST(HandOverOfKinds, APermitThatWasLostIsNotSurelyLeft) {
  for (const bool all_out : {false, true}) {
    History h = sound_times();
    h.process(1).asks(one_of(2)).is_granted(1).looks(true).is_told_of_loss();
    h.process(2).asks(one_of(2)).is_granted(2).looks(true);
    if (all_out) h.process(3).asks(one_of(2)).is_granted(3).looks(true).releases().has_released();
    h.process(4).asks(one_of(2)).after(1100ms).is_granted(4).looks(true);
    EXPECT_EQ(broken(h, quick), all_out ? Broken{Rule::hand_over} : nothing) << words(h, quick);
  }
}

// --- Counts ----------------------------------------------------------------------------------------------------------

TEST(CountsOfKinds, ATakeoverIsFromWhoeverCouldNotHoldItBeside) {
  const auto takeovers = [](const Event& first, const Event& second) {
    History h;
    h.process(1).asks(first).is_granted(1);
    h.process(2).asks(second).is_granted(2);
    return check(h.events(), {}).counts.takeovers;
  };
  EXPECT_EQ(takeovers(to_read, to_read), 0U);
  EXPECT_EQ(takeovers(to_read, to_write), 1U);
  EXPECT_EQ(takeovers(to_write, to_read), 1U);
  EXPECT_EQ(takeovers(one_of(2), one_of(2)), 0U);
  EXPECT_EQ(takeovers(one_of(1), one_of(1)), 1U);
}

}  // namespace
}  // namespace dlock::torture

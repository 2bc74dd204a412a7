// Which histories break the rules about what a lock is: exclusion, tokens, releases; and what known holes excuse.
#include "tests/unit/torture/checker/history_text.hpp"

namespace dlock::torture {
namespace {

using namespace std::chrono_literals;

const std::vector<Row> exclusion{
    {"OneAfterTheOther", "1: asks a, granted 1, held, returns; 2: asks a, granted 2, held, returns"},
    {"HeldAfterTheNextGrant", "1: asks a, granted 1; 2: asks a, granted 2, held; 1: held",
     "exclusion: process 1 found lock a held after process 2 had been granted it"},
    {"HeldBeforeTheNextGrant", "1: asks a, granted 1; 2: asks a; 1: held; 2: granted 2, held"},
    {"OtherLocks", "1: asks a, granted 1; 2: asks b, granted 2, held; 1: held"},
    {"TwiceInOneProcess", "1: asks a, granted 1, asks a, granted 2, held, acquire 1, held", "exclusion"},
    {"HeldAfterSeveralGrants",
     "1: asks a, granted 1; 2: asks a, granted 2, held, returns; 3: asks a, granted 3, held, returns; 1: {ends|held}",
     "|exclusion: process 1 found lock a held after process 2 had been granted it; "
     "exclusion: process 1 found lock a held after process 3 had been granted it"},
    // The news of the grant came when its lease had expired: it was never held.
    {"StaleGrantNotHeld", "1: asks a; 2: asks a, granted 2; 1: granted 1 for -1ms, unheld; 2: held"},
    {"StaleGrantHeld", "1: asks a; 2: asks a, granted 1; 1: granted 2 for -1ms, held; 2: held", "exclusion"},
    // Its session ended between the grant and the note of it, while its lease would have lasted.
    {"GrantLostBeforeALook", "1: asks a; 2: asks a, granted 2; 1: granted 1, lost, unheld; 2: held"},
    {"GrantReleasedAsOurs", "1: asks a; 2: asks a, granted 1; 1: granted 2, returns; 2: held", "exclusion"},
    {"TheOrderOfNotesAtOneInstant",
     "1: asks a, granted 1, held; 2: asks a; {1: held; 2: +0s granted 2|2: granted 2; 1: +0s held}; 2: held",
     "|exclusion"},
    {"PausedHolder",
     "1: asks a, granted 1 for 2s, held; stop 1; 2: asks a, +3s granted 2, held, returns; resume 1; "
     "1: {unheld, lost|held}",
     "|exclusion"},
    {"KilledHolder", "1: asks a, granted 1, held; kill 1; 2: asks a, granted 2, held"},
    {"Readers",
     "1: asks read:a, granted 1, held; 2: asks read:a, granted 2, held; 3: asks read:a, granted 3, held; "
     "1: held, returns; 2: held, returns; 3: held, returns"},
    {"WriterAndOthers",
     "1: asks {write|write|read}:a, granted 1, held; 2: asks {read|write|write}:a, granted 2, held; 1: held",
     "exclusion: process 1 found read-write lock a held after process 2 had been granted it"},
    {"WriterAndTheFirstOfTwoReaders",
     "1: asks read:a, granted 1; 2: asks read:a, granted 2, held, returns; 3: asks write:a, granted 3, held; "
     "1: {ends|held}",
     "|exclusion"},
    {"MoreHoldersThanPermits",
     "1: asks {2|3}:a, granted 1, held; 2: asks {2|3}:a, granted 2, held; 3: asks {2|3}:a, granted 3, held; "
     "1: held; 2: held; 3: held",
     "exclusion: process 3 was granted a permit of semaphore a while all 2 were held|"},
    {"PermitReleasedBefore",
     "1: asks 2:a, granted 1, held; 2: asks 2:a, granted 2, held, returns; 3: asks 2:a, granted 3, held; 1: held"},
    {"DifferentNumbersOfPermits", "1: asks 2:a, granted 1; 2: asks 3:a, granted 2, held; 1: held",
     "exclusion: process 2 was granted one of 3 permits of semaphore a while process 1 held one of 2"},
    {"KindsOfOneName",
     "1: asks a, granted 7, held; 2: asks write:a, granted 7, held; 3: asks 1:a, granted 7, held; "
     "4: asks election:a, granted 7, held; serve a 7 taken; serve write:a 7 taken; serve 1:a 7 taken; "
     "serve election:a 7 taken; 4: held; 3: held; 2: held; 1: held"},
    {"TwoLeaders", "1: asks election:a, granted 2; 2: asks election:a, granted 1, held; 1: held",
     "exclusion; growing tokens"},
};
INSTANTIATE_TEST_SUITE_P(Exclusion, HistoryTest, testing::ValuesIn(exclusion), name_of_row);

const std::vector<Row> tokens{
    {"GrantedTwice", "1: asks a, granted 7, held, returns; 2: asks {a|b}, granted 7, held",
     "unique tokens: token 7 was granted twice|"},
    {"GrantedTwiceLate", "1: asks a, granted 7 for -1ms; 2: asks a, granted 7 for -1ms", "unique tokens"},
    {"GrantedTwiceToReaders", "1: asks {read|2}:a, granted 1, held; 2: asks {read|2}:a, granted 1, held",
     "unique tokens"},
    {"None", "1: asks a, granted 0, held", "unique tokens: process 1 was granted the lock without a token"},
    {"NextTokens", "1: asks a, granted 7, held, returns; 2: asks a, granted {1000|6}, held",
     "|growing tokens: token 6 was granted after token 7"},
    {"ComparedWithTheGreatest",
     "1: asks a, granted 7, held, returns, asks a, granted 3 for -1ms, unheld, releases, disowned, asks a, granted 5, "
     "held, returns",
     "growing tokens: token 5 was granted after token 7"},
    // News of a grant may come when its lease has expired, and the lock has been granted again.
    {"NewsOfAGrantThatCameLate",
     "1: asks a; 2: asks a, granted 2, held, returns; 1: granted 1{ for -1ms, unheld, releases, disowned|, held, "
     "returns|, returns|, lost, unheld, releases, disowned}",
     "|growing tokens|growing tokens|"},
    {"TheOrderOfNotesAtOneInstant", "1: asks a, granted {1|2}, held, returns; 2: asks a, +0s granted {2|1}, held",
     "|growing tokens"},
    {"OfReadersAndPermits",
     "1: asks {read|read|write|write|2|1}:a, granted 2, held, returns; "
     "2: asks {read|write|read|write|2|1}:a, granted 1, held, returns",
     "|growing tokens|growing tokens|growing tokens||"},
    {"ReaderAfterAllWriters",
     "1: asks write:a, granted 5, held, returns, asks read:a, granted 9, held, returns; "
     "2: asks read:a, granted 7, held, returns, asks read:a, granted {6|4}, held, returns",
     "|growing tokens: token 4 was granted after token 5"},
};
INSTANTIATE_TEST_SUITE_P(Tokens, HistoryTest, testing::ValuesIn(tokens), name_of_row);

const std::vector<Row> fencing{
    {"OlderWriteRefused",
     "serve a 1 taken; serve a 1 taken; serve a 3 taken; serve a 2 {refused|taken}; serve a 3 taken",
     "|fencing: a write with token 2 was taken after one with token 3"},
    {"NewestWriteRefused", "serve a 1 taken; serve a 1 refused",
     "fencing: a write with token 1 was refused, though none newer than 1 had been taken"},
    {"TwoOlderWritesTaken", "serve a 3 taken; serve a 1 taken; serve a 2 taken",
     "fencing: a write with token 1 was taken after one with token 3; "
     "fencing: a write with token 2 was taken after one with token 3"},
    {"FirstWriteRefused", "serve a 1 refused", "fencing"},
    {"OtherLocks", "serve a 3 taken; serve b 1 taken"},
    {"ReadsAndWrites",
     "serve write:a 5 taken; serve read:a 9 taken; serve read:a 7 taken; serve write:a 8 refused; "
     "serve read:a 4 refused; serve write:a 9 taken; serve read:a 8 refused"},
    {"WriteOlderThanARead", "serve write:a 9 taken; serve read:a 11 taken; serve write:a 10 taken",
     "fencing: a write with token 10 was taken after a read with token 11"},
    {"ReadOlderThanARead", "serve read:a 9 taken; serve read:a 8 refused", "fencing: the first read was refused"},
};
INSTANTIATE_TEST_SUITE_P(Fencing, HistoryTest, testing::ValuesIn(fencing), name_of_row);

const std::vector<Row> releases{
    {"GrantedAgainMeanwhile", "1: asks a, granted 1, held, releases; 2: asks a, granted 2, held; 1: released"},
    {"GrantedAgainBefore",
     "1: asks a, granted 1, held; 2: asks a, granted 2, held; 1: releases, {released|disowned|unreleased}",
     "honest release: the release of process 1 said \"ours\", though process 2 had been granted the lock||"},
    // The news of the grant came when its lease had expired, after that of the newer one.
    {"StaleGrant", "1: asks a; 2: asks a, granted 2, held; 1: granted 1 for -1ms, releases, {disowned|released}",
     "|honest release"},
    // Where tokens fall, that is found once, and not with every release after it.
    {"TokensFellBefore", "1: asks a, granted 100, held, returns; 2: asks a, granted 1, held, returns",
     "growing tokens"},
    {"TokensFellBeforeAndMay",
     "1: asks a, granted 100, held, returns; 2: asks a, granted 1, held, returns",
     "",
     {.without = {Rule::growing_tokens}}},
    {"LostBefore", "1: asks a, granted 1, held, lost, releases, {disowned|released}", "|honest release"},
    // The note of the loss may come late; but a lease is either lost or released.
    {"LostMeanwhile", "1: asks a, granted 1, held, releases, {disowned|released}, lost", "|honest release"},
    {"ReleasedAgain", "1: asks a, granted 1, held, returns, releases, {disowned|released}", "|honest release"},
    {"ReleasedAfterNotOurs", "1: asks a, granted 1, held, releases, disowned, returns",
     "honest release: process 1 released the same grant again, and was told \"ours\""},
    {"ReleasedAfterAFailure", "1: asks a, granted 1, held, releases, unreleased, returns"},
    {"ReaderAndLaterOnes", "1: asks read:a, granted 1, held; 2: asks {read|write}:a, granted 2, held; 1: returns",
     "|honest release"},
    {"PermitThatOthersHold",
     "1: asks {3|2|2}:a, granted 1, held; 2: asks {3|2|2}:a, granted 2, held; 3: asks {3|2|2}:a, granted 3; "
     "1: releases; 2: held; 3: held; 1: {released|released|disowned}",
     "|honest release|"},
};
INSTANTIATE_TEST_SUITE_P(Releases, HistoryTest, testing::ValuesIn(releases), name_of_row);

// The service ends sessions, as in Hole; a lease lasts two seconds.
Rules of_sessions(std::set<Rule> rules = {Rule::exclusion, Rule::growing_tokens}) {
  return {
      .loss_slack = 500ms,
      .hole = {
          .rules = std::move(rules), .strikes = {"terminated"}, .faults = {"cut"}, .belief = 2s, .told_at_once = true}};
}
// The service forgets grants: a holder learns of it with its next request, or by its own clock.
Rules of_failovers(std::set<Rule> rules = {Rule::exclusion}, const std::string& strike = "promoted") {
  return {.hole = {.rules = std::move(rules), .strikes = {strike}, .belief = 2s, .told_at_once = false}};
}
constexpr std::string_view answered_by_the_former_server =
    "1: asks a, granted 1, held; strike promoted for 1s; 2: asks a, granted 2, held; 1: returns; heal promoted";
constexpr std::string_view overlap_after_the_fault =
    "1: asks a, granted 1, held; strike terminated for 100ms; heal terminated; 2: asks a, +10ms granted 2, held; "
    "1: +100ms held";

const std::vector<Row> hole_times{
    {"NoHole", overlap_after_the_fault, "exclusion"},
    {"OverlapAfterTheFault", overlap_after_the_fault, "", of_sessions()},
    {"AnotherRule", overlap_after_the_fault, "exclusion", of_sessions({Rule::growing_tokens})},
    {"AnotherFault",
     "1: asks a, granted 1, held; strike slow for 100ms; heal slow; 2: asks a, granted 2, held; 1: held", "exclusion",
     of_sessions()},
    {"OverlapBeforeTheFault",
     "1: asks a, granted 1, held; 2: asks a, granted 2, held; 1: held; strike terminated for 100ms; heal terminated",
     "exclusion", of_sessions()},
    {"AskedAfterTheFault",
     "strike terminated for 100ms; heal terminated; 1: asks a, granted 1, held; 2: asks a, granted 2, held; 1: held",
     "exclusion", of_sessions()},
    {"LossSignalledLate",
     "1: asks a, granted 1, held; strike terminated for 100ms; heal terminated; 2: asks a, +10ms granted 2, held; "
     "1: +600ms held",
     "exclusion", of_sessions()},
    // The last two: its loss is not signalled when it goes on; its lease has expired.
    {"StoppedHolder",
     "1: asks a, granted 1, held; stop 1; strike terminated for 100ms; heal terminated; 2: asks a, granted 2, held; "
     "+{1500ms|1000ms|2000ms} resume 1; 1: +{100ms|600ms|1ms} held",
     "|exclusion|exclusion", of_sessions()},
    {"AskedWhileTheFaultLasts",
     "strike terminated for 100ms; 1: +200ms asks a, granted 1, held; 2: asks a, granted 2, held; 1: held; "
     "heal terminated",
     "exclusion", of_sessions()},
    {"FaultThatGoesOnTakingLocks",
     "strike cut for 1ms; heal {slow|cut}; 1: asks a, granted 1, held; 2: asks a, granted 2, held; 1: held",
     "|exclusion", of_sessions()},
    {"BeliefForALease",
     "1: asks a, granted 1, held; strike promoted for 100ms; heal promoted; 2: asks a, +200ms granted 2, held; "
     "1: +{1700ms|1900ms} held",
     "|exclusion", of_failovers()},
    {"FaultOfALockOrAProcess",
     "1: asks a, granted 1, held; strike promoted for 1h{ of a| of b| on 1| on 2| of a on 1| of b on 1}; "
     "2: +1ms asks a, granted 2, held; 1: held",
     "|exclusion||exclusion||exclusion", of_failovers()},
    // Two locks may suffer at once: the end of one fault is not that of the other.
    {"HealedForAnotherLock",
     "strike promoted of a; heal promoted of {b|a}; 1: asks a, granted 1, held; 2: asks a, granted 2, held; 1: held",
     "|exclusion", of_failovers()},
    // The fault takes the lock from a holder before the news of its grant has come.
    {"NewsOfTheGrantAfterTheNext",
     "1: asks a; strike {promoted|slow} for 10ms; heal {promoted|slow}; 2: asks a, granted 2, held; "
     "1: granted 1, held; 2: held",
     "growing tokens|exclusion; growing tokens", of_failovers()},
    {"NewsOfATokenAfterTheNext",
     "1: asks a; strike {terminated|slow} for 10ms; heal {terminated|slow}; 2: asks a, granted 2, held, returns; "
     "1: granted 1, held",
     "|growing tokens", of_sessions()},
    // Two servers believe that they are the one to ask.
    {"ReleaseAnsweredByTheFormerServer", answered_by_the_former_server, "honest release", of_failovers()},
    {"ReleaseAnsweredByTheFormerServerAndTheHoleIsOne", answered_by_the_former_server, "",
     of_failovers({Rule::exclusion, Rule::honest_release})},
    {"ReleaseAnsweredByTheFormerServerInAnotherFault", answered_by_the_former_server, "honest release",
     of_failovers({Rule::exclusion, Rule::honest_release}, "cut")},
    // A permit that was taken away is another's, though its holder believes in it.
    {"PermitsTakenAway",
     "1: asks 2:a, granted 1, held; 2: asks 2:a, granted 2, held; strike {promoted|slow} for 10ms; "
     "heal {promoted|slow}; 3: asks 2:a, granted 3, held, returns; 1: held; 2: held",
     "|exclusion; honest release", of_failovers({Rule::exclusion, Rule::honest_release})},
    // An overlap that is excused hides none that is not.
    {"ShorterOverlapWithinOne",
     "1: asks a, granted 1, held; strike terminated for 10ms; heal terminated; 2: asks a, granted 2, held; "
     "3: asks a, granted 3, held; 2: held; 1: held",
     "exclusion: process 2 found lock a held after process 3 had been granted it", of_sessions()},
};
INSTANTIATE_TEST_SUITE_P(HoleTimes, HistoryTest, testing::ValuesIn(hole_times), name_of_row);

}  // namespace
}  // namespace dlock::torture

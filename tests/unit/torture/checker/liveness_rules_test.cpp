// Which histories break the rules about when things happen: losses, deadlines, progress, hand-over; and what is left.
#include "tests/unit/torture/checker/history_text.hpp"

namespace dlock::torture {
namespace {

using namespace std::chrono_literals;

const std::vector<Row> losses{
    {"Signalled", "1: asks a, granted 1, held, unheld, +{500ms|501ms} lost", "|timely loss"},
    {"NeverSignalled", "1: asks a, granted 1, held, {held|unheld}; 2: +1s asks b for 1s, denied busy",
     "|timely loss: process 1 found the lock not held, and was never told of the loss"},
    {"SignalledBeforeALook", "1: asks a, granted 1, held, lost, +10s unheld"},
    // A lease of a fixed length ends by itself; that is a loss as well.
    {"FixedLeaseExpired",
     "1: asks a, granted 1 for 1s, held, +1s unheld{, lost|}; 2: asks a, granted 2, held, +1s returns", "|timely loss"},
    {"FoundWhileReleased",
     "1: asks a, granted 1, held, {releases, unheld, released|unheld}; 2: +1s asks b for 1s, denied busy",
     "|timely loss"},
    // The loss of a lock that was released soon after the look is not signalled any more.
    {"ReleasedSoonAfter",
     "1: asks a, granted 1, held, unheld, +{100ms|600ms} releases, disowned; 2: +10s asks b for 1s, denied busy",
     "|timely loss"},
    {"EndedProcess", "1: asks a, granted 1, held, unheld{; kill 1|, ends|}; 2: +10s asks b for 1s, denied busy",
     "||timely loss"},
    {"PausedProcess", "1: asks a, granted 1, held, unheld{; stop 1|}; +5s resume 1; 1: lost", "|timely loss"},
    // Two faults stop it and one lets it go on: it stood still once.
    {"PausedByTwoFaults",
     "1: asks a, granted 1, held, unheld; +0s stop 1; +1s stop 1; +1s resume 1; 1: +{400ms|600ms} lost",
     "|timely loss"},
    // Only pauses between the look and the signal count, as far as they lie there.
    {"PausedSeveralTimes",
     "1: asks a, granted 1, held; stop 1; +10s resume 1; 1: +0s unheld; +0s stop 1; +1s resume 1; +0s stop 1; "
     "+1s resume 1; 1: +{500ms|502ms} lost; stop 1; +10s resume 1",
     "|timely loss"},
    {"HeldAgainAfterALook", "1: asks a, granted 1, held, unheld, lost, {unheld|held}",
     "|timely loss: process 1 found the lock held after it had lost it or given it back"},
    {"HeldAgainAfterTheSignal", "1: asks a, granted 1, held, lost, {unheld|held}", "|timely loss"},
    {"HeldAgainAfterTheRelease", "1: asks a, granted 1, held, returns, {unheld|held}", "|timely loss"},
    {"SignalledTwice", "1: asks a, granted 1, held, lost{|, lost}", "|timely loss"},
    // The signal may overtake the note of the grant, which another thread makes; and its process may be killed before.
    {"SignalledBeforeTheGrantIsNoted", "1: asks a, lost; kill 1"},
};
INSTANTIATE_TEST_SUITE_P(Losses, HistoryTest, testing::ValuesIn(losses), name_of_row);

const std::vector<Row> deadlines{
    {"Slack", "1: asks a for 5s, +{7s|7001ms} denied timed out", "|deadlines"},
    {"SlackOfGrants", "1: asks a for 5s, +{7s|7001ms} granted 1", "|deadlines"},
    {"SlackOfATry", "1: asks a for 0s, +{2s|2001ms} denied busy", "|deadlines"},
    {"NeverEnded", "1: asks a for 5s; 2: +{7s|7001ms} asks b for 1s",
     "|deadlines: acquire 1 of process 1 ended 2.001 s late, or has not ended yet"},
    {"UnlimitedWait", "1: asks b, granted 1, held; 2: asks b{| for 1h}; 1: +100h held", "|deadlines"},
    {"Cancelled", "1: asks a, +1s cancels, +{2s|2001ms} denied cancelled", "|deadlines"},
    {"CancelledTwice", "1: asks a, cancels, +2s cancels, +1s denied cancelled", "deadlines"},
    {"PausedProcess", "1: asks a for 5s{; stop 1|}; +30s resume 1; 1: denied timed out", "|deadlines"},
    // The acquire is noted before it begins, and the wait is counted from its beginning.
    {"PausedBeforeTheAcquire", "1: asks a for 5s{; stop 1|}; +4s resume 1; 1: +5s denied timed out", "|deadlines"},
    {"KilledProcess", "1: asks a for 5s{; kill 1|}; 2: +1h asks b for 1s", "|deadlines"},
    {"EndedProcess", "1: asks a{, denied closed|}, ends",
     "|deadlines: acquire 1 of process 1 never ended, though its process did"},
    {"TimedOutEarly", "1: asks a for 5s, +{4990ms|4980ms} denied timed out",
     "|deadlines: acquire 1 of process 1 timed out before its deadline"},
    {"UnlimitedWaitEnded", "1: asks a, +1h denied {unavailable|timed out}", "|deadlines"},
    {"CancelledUnasked", "1: asks a for 5s, {cancels, |}denied cancelled", "|deadlines"},
    {"EndedTwice",
     "1: asks a for 5s, {granted 1, granted 2|denied busy, denied busy|granted 1, denied busy|"
     "denied busy, asks a for 5s, denied busy}",
     "deadlines: acquire 1 of process 1 was granted twice|deadlines|deadlines|"},
    {"Release", "1: asks a for 5s, granted 1, releases, +{5s|5001ms} unreleased",
     "|deadlines: the release of acquire 1 of process 1 took 5.001 s, or has not ended yet"},
    {"ReleaseNeverEnded", "1: asks a for 5s, granted 1, releases{; kill 1|}; 2: +6s asks b for 1s", "|deadlines"},
    {"ReleaseOfAPausedProcess", "1: asks a for 5s, granted 1, releases{; stop 1|}; +1min resume 1; 1: released",
     "|deadlines"},
};
INSTANTIATE_TEST_SUITE_P(Deadlines, HistoryTest, testing::ValuesIn(deadlines), name_of_row);

const std::vector<Row> progress{
    {"FreeOnceAllIsHealed", "heal; 1: +0s asks a, +{15s|15001ms} granted 1",
     "|progress: lock a was free for 15.001 s though process 1 waited for it"},
    {"FreeBeforeAllIsHealed", "heal {network|everything}; 1: asks a, +16s granted 1", "|progress"},
    {"OnlyTheTimeAfterTheHealingCounts", "1: asks a; +1h heal; 1: +{15s|15001ms} granted 1", "|progress"},
    {"HeldLock", "1: asks a, granted 1, held; heal; 1: {held|returns}; 2: asks a; 1: +1min asks b for 0s, denied busy",
     "|progress"},
    {"EndedHolder", "1: asks a, granted 1, held; heal{; kill 1|; 1: ends|}; 2: asks a, +20s granted 2, held",
     "progress|progress|"},
    // No event says how the first one ended; but a later one was held, so its end is the one that counts.
    {"HolderWithoutAnEnd",
     "sound; 1: asks a, granted 1, held{; 2: asks a, granted 2, held, returns|}; 3: asks a; "
     "4: +30s asks b for 0s, denied busy",
     "progress|"},
    // It was not asked to: a deadline, a cancellation, a denial, a kill, its end, nothing.
    {"WaiterThatLeft",
     "sound; 1: asks a{ for 500ms|, +500ms cancels|, +500ms denied unavailable|; +500ms kill 1|, +500ms ends|}; "
     "2: +1900ms asks b for 0s, denied busy{; 1: denied timed out|; 1: denied cancelled||||}",
     "|||||hand-over",
     {.without = {Rule::deadlines}}},
    {"Probe", "heal; probe a {got|not}", "|progress: a new process did not get lock a"},
    {"Crash", "1: asks a, granted 1, held, asks b for 1s; {kill|crash} 1; 2: +10s asks a, granted 2, held",
     "|no crash: process 1 ended by itself: status 134"},
    {"Residue", "heal; {probe a got|residue key dlock:a}", "|no residue: key dlock:a"},
};
INSTANTIATE_TEST_SUITE_P(Progress, HistoryTest, testing::ValuesIn(progress), name_of_row);

const std::vector<Row> hand_overs{
    {"InSoundTimes", "sound; 1: asks a, granted 1, held; 2: asks a; 1: returns; 2: +{1s|1001ms} granted 2",
     "|hand-over: lock a was free for 1.001 s though process 2 waited for it"},
    {"FreeLock", "sound; 1: asks a, +{1s|1001ms} granted 1", "|hand-over"},
    {"BeforeTimesAreSound", "heal; 1: asks a, granted 1, held; 2: +15s asks a; 1: returns; 2: +{5s|10s} granted 2",
     "|hand-over"},
    // The release failed, or found that the lock was lost: until its lease expires, the service may keep the lock.
    {"PerhapsNotFreeLater",
     "sound; 1: asks a, granted 1, held; 2: asks a; "
     "{1: returns|1: releases, disowned|1: releases, unreleased|1: lost|kill 1}; 2: +10s granted 2",
     "hand-over||||"},
    {"PerhapsNotFreeAfterTheRecovery",
     "sound; 1: asks a, granted 1, held; 2: asks a; "
     "{1: returns|1: releases, disowned|1: releases, unreleased|1: lost|kill 1}; 2: +15999ms granted 2",
     "progress"},
    // A waiter comes when the lock has long been free; how its holder left it does not matter any more.
    {"LeaseOfTheLastHolderExpired",
     "sound; 1: asks a, granted 1, held, releases, unreleased; 2: +{10s|20s} asks a, +2s granted 2", "|hand-over"},
    {"ToAnyWaiter",
     "sound; 1: asks a, granted 1, held; 2: asks a; 3: asks a; 1: returns; 3: +900ms granted 2, returns"
     "{|; 4: +1100ms asks a, +0s granted 3}",
     "|hand-over: lock a was free for 1.100 s though process 2 waited for it"},
    // Each of them waits for less than a hand-over may take, but the lock is free all the time.
    {"SeveralWaiters",
     "sound; 1: asks a for 600ms; 2: +{601ms|500ms} asks a for 600ms; 1: +100ms denied timed out; "
     "2: +{499ms|500ms} denied timed out",
     "|hand-over"},
    // At one instant the lock is released and granted again, in whatever order that was noted.
    {"AtOneInstant",
     "sound; 1: asks a, granted 1, held; 2: asks a; 1: releases{|, released}; 2: +0s granted 2{; 1: +0s released|}; "
     "2: +1min releases"},
    {"ReadersAfterAWriter",
     "sound; 1: asks write:a, granted 1, held; 2: asks read:a; 3: asks read:a; 1: returns; 2: granted 2, held; "
     "3: +{900ms|1002ms} granted 3",
     "|hand-over"},
    {"ReaderAfterAWaitingWriter",
     "sound; 1: asks read:a, granted 1, held{; 2: asks write:a|}; 3: asks read:a; 1: +5s held", "|hand-over"},
    // Readers who asked soon after the writer may have been before it.
    {"WriterBeforeLaterReaders",
     "sound; 1: asks read:a, granted 1, held; 2: asks write:a; 3: +{500ms|1100ms} asks read:a, granted 2, held; "
     "1: returns; 3: +1100ms held, returns; 2: granted 3, held",
     "|hand-over: only readers who had come later held read-write lock a for 1.103 s, though process 2 waited to "
     "write"},
    {"WriterBeforeReadersInTurn",
     "sound; 1: asks read:a, granted 1, held; 2: asks write:a; 3: +1100ms asks read:a, granted 3, held; "
     "1: +400ms returns; 4: asks read:a, granted 4, held; 3: +400ms returns; 5: asks read:a, granted 5, held; "
     "4: +400ms returns; 6: asks read:a, granted 6, held; 5: +400ms returns; 7: asks read:a, granted 7, held; "
     "6: +400ms returns",
     "hand-over"},
    // Readers who were in line before the second writer enter when the first one has left.
    {"WriterBehindAnotherThatGaveUp",
     "sound; 1: asks read:a, granted 1, held; 2: asks write:a for 2100ms; 3: asks write:a; 4: +1500ms asks read:a; "
     "1: +500ms held; 2: +120ms denied timed out; 4: granted 3, held; 1: returns; 4: +3s held, returns; "
     "3: granted 4, held"},
    {"WriterBehindAnotherThatHeld",
     "sound; 1: asks read:a, granted 1, held; 2: asks write:a; 3: asks write:a; 4: +1500ms asks read:a; "
     "1: +500ms held, returns; 2: granted 2, held, returns; 4: granted 3, held, +3s held, returns; "
     "3: granted 4, held"},
    {"PermitThatIsLeft", "sound; 1: asks {1|2}:a, granted 1, held; 2: asks {1|2}:a, +1100ms granted 2; 1: returns",
     "|hand-over"},
    // The service may keep the permit for it; but not where all permits have been granted since.
    {"PermitThatWasLost",
     "sound; 1: asks 2:a, granted 1, held, lost; 2: asks 2:a, granted 2, held"
     "{|; 3: asks 2:a, granted 3, held, returns}; 4: asks 2:a, +1100ms granted 4, held",
     "|hand-over"},
};
INSTANTIATE_TEST_SUITE_P(HandOver, HistoryTest, testing::ValuesIn(hand_overs), name_of_row);

}  // namespace
}  // namespace dlock::torture

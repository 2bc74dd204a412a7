// strategy=sequential and sequential-herd: acquiring in the queue, giving up, releases, and what goes wrong on the way.
#include <gtest/gtest.h>

#include "scenario.hpp"

namespace dlock::zookeeper {
namespace {

class QueueScenario : public testing::TestWithParam<Scenario> {};

TEST_P(QueueScenario, Holds) {
  run_scenario(GetParam());
}

#define CURATORS_NODE "/_c_0e1cf9d8-5f6c-4a49-8f0a-1c0f0c3f1b2d"

constexpr Scenario queue_rows[] = {
    // --- Acquiring, waiting, trying ---
    {"FreeLock_Acquired_CostsOneRoundTrip", "",
     "mark; {wait|try} a; a granted; sent create children; own 1; data own host:1:test; data place"},
    // Hazard 12: never the sequence number, which begins anew with the parent.
    // Hazard: numbers start again in a new parent: tokens are transactions
    {"Token_OfAParentMadeAnew_IsTheLaterTransaction", "",
     "wait a; a granted; release a; remove place; wait b; b granted; b newer a; release b; remove place; wait c; c "
     "granted; c newer b"},
    {"SessionShorterThanRequested_CountsAndIsWarnedOfOnce", "",
     "grants 4s; fresh; wait a; a lease 4s; a lasts 3s 3958ms; expire; 1s; lost 1; warnings 1 4s"},
    // The newest heartbeat that is a quarter of the session timeout older than the request, not than its answer.
    // Shows: known-end
    {"Lease_CountsFromWhenItsRequestWasSent", "",
     "12s; on heartbeat* refuse; on create hold; wait a; 2s; release_answers; run; a granted; a lease 10s; a lasts "
     "3397ms 3398ms"},
    // Hazards 3 and 22.
    // Hazard: a node per waiting thread: by design
    {"TwoAcquires_OfOneSession_AreTwoNodes", "", "wait a; wait b; a granted; b busy 1; own 2"},
    // Shows: waiters-woken
    {"Waiter_BehindAnother_WatchesItAlone", "",
     "member h; wait a; remember first; mark; wait b; watched first; watches 2"},
    {"NextInLine_HolderGone_AsksForNoList", "",
     "member h; wait a; member x; member y; mark; remove h; run; a granted; asked children 0; asked get 2"},
    // Hazard 11: a counter that begins anew gives a number for the second time.
    {"TwinOfOurNumber_MadeBeforeUs_IsFirst", "",
     "twin t 0; sequence 0; {wait|start} a; run; a busy 1; remove t; run; a granted"},
    // Hazard 8.
    // Hazard: the node before ours gave up: an event is no grant
    {"WaiterBefore_GivesUp_HandsNothingOn", "",
     "member h; member quitter; wait a; remove quitter; run; a waits; remove h; run; a granted"},
    {"Herd_AnyChange_ListsAgain", "strategy=sequential-herd",
     "member h; wait a; wait b; mark; member late; run; asked children 2; a waits; mark; remove h; run; asked get 0; a "
     "granted; b waits"},
    {"Herd_HolderGoneWhileItAsks_ListsAgain", "strategy=sequential-herd",
     "member h; member other; put ./leases; on get do remove h; on get hold; wait a; a waits; calm; mark; "
     "release_answers; run; asked children 1; a waits; remove other; run; a granted"},
    // A list for each waiter of a long queue would be a load that grows with its square.
    {"Queue_ThatStandsStill_IsNotListed", "",
     "member x; member y; member z; wait a; mark; 5min; asked get 7-16; asked children 0; a waits"},
    {"Holder_DataChanged_KeepsItsLock", "", "wait a; 1s; repeat 3 set own host:1:test, run, watches 2; lost 0"},
    {"Holder_ForAMoment_DoesNotWatchItsNode", "", "mark; wait a; remember n; release a; 1s; asked get@n 0"},
    // Shows: hole broken-by-hand
    // Hazard: a holder's node is removed: the holder watches it
    {"Node_RemovedByAnotherClient_IsLost", "",
     "wait a; {10ms|5s|on get@own lose_answer; 5s}; lost 0; remove {own|place}; 1s; lost 1; release a not_owner"},
    {"LostEvent_OfTheHolder_CostsTwoQuestions", "",
     "member h; wait a; {|set h __REVOKE__}; run; lose_events; remove h; keep_events; mark; 45s; a granted; asked "
     "get@h 1; asked get 2-4"},

    // Hazards 23 and 24: a server that lags behind is brought up to date first.
    {"Try_OfALockThatWasHeld_LooksFirst", "",
     "member h; try a; mark; try b; b busy 1; sent sync children; remove h; try c; c granted; release c; mark; try d; "
     "d granted; sent create children"},
    {"Try_OfALockThatWasHeldAndHasNoNodeNow_IsGranted", "", "member h; try a; remove place; try b; b granted"},
    {"Try_ThatIsOvertaken_TakesItsNodeBack", "", "on join do member h; try a; a busy 1; own 0"},
    {"Try_ThatMayNotLook_DoesNotJoin", "",
     "member h; try a; mark; on children forbid; try b; b failed access_denied; asked create 0"},

    // --- Parents ---
    // Hazard: parent nodes accumulate or disappear: containers, made again
    {"Parent_Reaped_IsMadeAgain", "", "wait a; release a; remove place; wait b; b granted; b unreachable 0"},
    {"Parent_ReapedAgainAndAgain_IsReported", "",
     "on join* do remove place; start a; 10ms; a waits; a unreachable 1-9 is removed; try b; b failed unavailable; "
     "calm; 1s; a granted"},
    // The server removes containers that are empty again, and none that were never used. In kazoo's layout the node
    // stays: an object of kazoo's may have found it meanwhile.
    {"Parents_AsManyAsThePrefixHas_AreMade", "prefix=/1/2/3/4/5/6/7/8/9/10/11/12{|&strategy=ephemeral}",
     "remove /1; wait a; a unreachable 0; exists /1/2/3/4/5/6/7/8/9/10/11/12/lock"},
    // Hazard 13. An object of kazoo's makes its parents once, and does not find out that a server has removed them.
    {"MissingParents_InCuratorsLayout_AreContainers", "prefix=/a/b",
     "wait a; a lease 10s; exists /a/b/lock; made_as container"},
    {"MissingParents_InKazoosLayout_Stay", "prefix=/a/b&layout=kazoo",
     "wait a; a lease 10s; exists /a/b/lock; made_as persistent"},
    {"Container_NeverEntered_IsRemoved", "",
     "remove place; on create@place hold; wait a; give_up a; release_answers; run; gone place"},
    {"Container_ThatWasThereAlready_Stays", "",
     "on join do remove place, put place; remove place; on create@place hold do put place; wait a; give_up a; "
     "release_answers; run; exists place"},
    {"Container_OfKazoosLayout_Stays", "layout=kazoo",
     "remove place; on create@place hold; wait a; give_up a; release_answers; run; exists place"},
    {"Container_ThatAnotherClientEntered_Stays", "",
     "remove place; on create@place hold; wait a; give_up a; member x; release_answers; run; exists x"},

    // --- Outcomes that are not known ---
    // Hazard 1.
    // Hazard: a create's answer is lost: dlock finds the node by its uuid, behind an empty write
    {"Create_AnswerLost_IsFoundByItsUuid", "{|strategy=sequential-herd}",
     "on create lose_answer; wait a; a waits; a unreachable 1; remember node; 100ms; a granted; same node"},
    {"Search_FoundNodeGone_JoinsAtOnce", "",
     "on create lose_answer; wait a; remember node; on get do remove node; mark; 100ms; a granted; a unreachable 1; "
     "asked children 2; other node"},
    // A request of the session before that is carried out late.
    {"Search_FoundNodeOfAnotherSession_IsNoPlaceAndGoes", "",
     "on create lose_request; wait a; late; 500ms; gone late; a granted; own 1"},
    {"Search_IsBroughtUpToDateFirst", "",
     "on create lose_answer; wait a; mark; on heartbeat lose_request; 100ms; asked heartbeat 1-2; asked create 0; 1s; "
     "a granted; own 1"},
    {"Search_Forbidden_EndsTheAcquire", "",
     "on create lose_answer; on children+1 forbid; wait a; 100ms; a failed access_denied"},
    // A connection that breaks while it is sent is answered for before the session is ready again.
    {"Search_AnsweredBeforeTheSessionIsReady_IsRepeatedOnce", "",
     "on create lose_answer; wait a; mark; keep_unsent; on heartbeat do disconnect; 100ms; reconnect; run; a granted; "
     "asked children 3"},
    {"FirstLook_AnsweredBeforeTheSessionIsReady_IsRepeatedOnce", "",
     "member h; try a; remove h; mark; keep_unsent; on sync do disconnect; try b; reconnect; run; b granted; asked "
     "children 3"},
    // Hazard 2.
    // Hazard: a node of the previous session: dlock compares owner and session
    {"NodeOfTheLastSession_IsNeverBelieved", "",
     "on create hold; wait a; remember node; expire; 1s; a granted; other node"},
    {"Question_UnderWay_IsNotRepeatedByAReconnection", "",
     "member h; wait a; mark; keep_unsent; remove h; tasks 1; disconnect; run; reconnect; run; a granted; asked get 2"},
    {"Question_AboutATwinNotAnswered_IsAskedAgain", "",
     "twin t 0; sequence 0; on get {lose_answer|lose_request|refuse}; wait a; 100ms; a waits; remove t; run; a "
     "granted"},

    // --- Connections and sessions; the stages of a wait are in core/waiter_test.cpp ---
    {"Waiter_HolderGoneWhileDisconnected_AsksNothing", "{|strategy=sequential-herd}",
     "member h; wait a; disconnect; run; mark; remove h; 1s; sent; a waits; reconnect; 100ms; a granted"},
    {"Twin_ListAnsweredAfterTheConnectionBroke_IsNotAskedAbout", "",
     "twin t 0; sequence 0; on children lose_answer; wait a; mark; on children do disconnect; 100ms; asked children 1; "
     "asked get 0; reconnect; run; a waits; remove t; run; a granted"},
    {"OwnNode_OneBeforeGoneAsTheConnectionBreaks_IsNotAskedAbout", "",
     "member h; on watch do remove h, disconnect; mark; wait a; connections connected reconnecting; asked get 1; a "
     "waits; reconnect; run; a granted"},
    // A wait that times out then says that the service was unavailable: a question has no effect that could be in
    // doubt.
    {"Waiter_AnswerLost_LearnsThatItIsUnavailable", "",
     "{member h; wait a; on get lose_answer do disconnect; remove h|on create lose_answer do disconnect; wait a}; run; "
     "a told unavailable; a waits"},
    {"Watch_OutlivesADisconnect", "{|strategy=sequential-herd}",
     "member h; wait a; mark; disconnect; run; reconnect; run; asked any 0; watches 1-2; remove h; run; a granted"},
    {"Waiter_LocksNodeRemoved_QueuesAnew", "",
     "member h; member x; wait a; remove place; 100ms; a granted; a unreachable 0"},
    {"Try_SessionGivenUp_GoesOnInTheNext", "",
     "member h; try a; remove h; on any* hold; on heartbeat* hold; try b; 9898ms; calm; 1s; b granted; b unreachable "
     "0"},
    // The pause between retries grows; a busy answer resets it.
    {"Trouble_Over_SlowsNoWaiter", "",
     "member h; on create* refuse; wait a; 1s; calm; 5s; a busy 1; on get refuse; remove h; 50ms; a granted"},

    // --- Refusals ---
    // Hazard 11.
    {"Counter_ThatRanOut_IsRefusedAndLeavesNothing", "",
     "sequence {2147483647|2147418112}; {wait|try} a; a failed protocol /dlock/lock; own 0"},
    // Hazard 14.
    {"ForeignLayout_IsRefusedAndLeftAlone", "",
     "put ./0e1cf9d85f6c4a498f0a1c0f0c3f1b2d__lock__0000000001 ephemeral; {wait|try} a; a failed protocol kazoo; own "
     "0; below place 1"},
    {"NodesOfAnotherKind_AreNeverJoined", "",
     "{as lock; put ./_c_1-__READ__|as read_write; put ./_c_1-lock-|as read_write; put ./_c_1-permit-of-2-|as "
     "semaphore; put ./_c_1-__WRIT__|as election; put ./_c_1-permit-of-2-} ephemeral numbered; {wait|try} a; a failed "
     "protocol /dlock; own 0; below place 1"},
    {"UnknownChild_IsIgnoredWithOneWarning", "",
     "put ./config; wait a; a granted; release a; wait b; b granted; warnings 1 config"},
    {"EphemeralNode_InPlaceOfTheQueue_IsRefused", "",
     "remove place; put place ephemeral other; wait a; a failed protocol strategy=ephemeral; exists place"},
    {"EphemeralNode_ConnectionBrokenBehindTheCreate_IsNotQueried", "",
     "remove place; put place ephemeral other; mark; on join do disconnect; wait a; a failed protocol; asked get 0"},
    {"EphemeralNode_GoneWhenItIsLookedAt_IsNotBlamed", "",
     "remove place; put place ephemeral other; on get do remove place, put place; wait a; a failed protocol; exists "
     "place"},

    // --- Giving up ---
    {"Create_NotAnsweredBeforeTheSessionEnds_IsTakenBack", "",
     "on create hold; wait a; give_up a; disconnect; 20s; reconnect; 5s; own 0"},

    // --- Read-write locks ---
    {"Nodes_OfAReaderAndAWriter_AreAsOthersExpect", "",
     "as read_write; wait r shared; r granted; wait w; w waits; own 2; data own host:1:test"},
    {"Loss_SaysWhatWasLost", "", "as read_write; wait r shared; 1s; remove own; run; lost 1 read-write lock \"lock\""},
    {"Try_OfALockThatWasHeld_JoinsWhereItFits", "",
     "as read_write; writer w; try a shared; a busy 1; mark; try b shared; b busy 1; asked create 0; reader r; remove "
     "w; try c; c busy 1; try d shared; d granted"},
    // Since Curator 5.5 a writer goes on to read by a node with the writer's number.
    {"Writer_GoingOnToRead_DelaysTheNextWriterOnly", "",
     "as read_write; writer w; wait r shared; wait next; put "
     "./_c_00000000-0000-4000-8000-0000000000ff-__READ__0000000000 ephemeral; remove w; run; r granted; next waits; "
     "release r; next waits; remove ./_c_00000000-0000-4000-8000-0000000000ff-__READ__0000000000; run; next granted"},

    // --- Semaphores ---
    {"FreePermits_Acquired_CostOneRoundTripEach", "",
     "as semaphore; put place; mark; wait a 3; a granted; wait b 3; b granted; sent create children create children"},
    {"Client_ThatEnters_SaysSoOnlyToThoseBehindIt", "",
     "as semaphore; permit h 1; wait a 1; wait b 1; remember second; on set {answer|lose_request}; remove h; run; 1s; "
     "a granted; data own host:1:test\nheld; b waits; release a; b granted; data own host:1:test"},
    {"Client_ThatEntersAtOnce_SaysSoToThoseBehindIt", "",
     "as semaphore; permit h 2; permit other 2; on children@place do permit behind 2, remove h; wait a 2; a granted; "
     "data own host:1:test\nheld"},
    // It learns that the one before it has entered when it watches that one, or before.
    {"Client_ThatEnteredAtOnce_IsNotTakenForAWaiter", "",
     "as semaphore; permit h 2; permit other 2; permit third 2; {|on children@place hold}; wait a 2; remove h; set "
     "third other:2:x\nheld; release_answers; run; a waits; remove other; run; a granted"},
    {"OtherNumberOfPermits_IsRefusedAndWritesNothingMore", "",
     "as semaphore; permit h 2; {wait|try} a 3; a failed invalid_argument 2 permits, but the request says 3; own 0; "
     "mark; wait b 3; b failed invalid_argument; asked create 0; wait c 2; c granted; remove h; run; wait d 3; d "
     "failed invalid_argument; release c; wait e 3; e granted"},
    // One that has joined the queue, and has not looked yet, or was killed before it could.
    {"Client_ToBeRefused_RefusesNoOther", "",
     "as semaphore; permit h 3; permit stray 2; wait a 3; a waits; try t 3; t busy 1; remove stray; run; a granted; "
     "permit next 2; wait b 3; remove h; release a; b waits; set next other:1:x\nheld; run; b failed invalid_argument "
     "2 permits"},

    // --- Other programs' lockers, by the names that they really have ---
    // Curator 5.4: both parents are containers.
    {"CuratorsSemaphore_InUse_RefusesAndOursWritesOnlyOnce", "{|layout=kazoo|strategy=sequential-herd}",
     "put ./locks; put ./{leases|locks}" CURATORS_NODE "-lease- ephemeral numbered; {wait|try} a; "
     "a failed protocol /dlock/lock; a failed protocol {leases|locks}; run; own 0; mark; wait b; try c; b failed "
     "protocol; c failed protocol; asked create 0"},
    // kazoo 2.8: each of our nodes would be a lease to kazoo, and use up one of the numbers.
    {"KazoosSemaphore_InUse_RefusesAndOursWritesOnlyOnce", "{|layout=kazoo|strategy=sequential-herd}",
     "put ./0e1cf9d85f6c4a498f0a1c0f0c3f1b2d ephemeral; {wait|try} a; a failed protocol kazoo; own 0; mark; wait b; "
     "try c; b failed protocol; c failed protocol; asked create 0; remove ./0e1cf9d85f6c4a498f0a1c0f0c3f1b2d; "
     "{wait|try} d; d granted; release d; mark; wait e; e granted; sent create children"},
    {"UnknownProgram_NumberedNode_IsRefused", "{|layout=kazoo|strategy=sequential-herd}",
     "put ./ex ephemeral numbered; {wait|try} a; a failed protocol ex0000000000; own 0; warnings 0"},
    {"CuratorsSemaphore_LeftBehind_DelaysNoAcquire", "{|layout=kazoo|strategy=sequential-herd}",
     "{put ./locks|put ./leases|put ./locks; put ./leases}; wait a; a granted; release a; try b; b granted; warnings "
     "0"},
    // The list shows only `locks`; when that is looked at, the other has gone on to `leases`.
    {"CuratorsWaiter_MovingMeanwhile_IsNotMissed", "",
     "put ./locks" CURATORS_NODE "-lock-0000000001 ephemeral; on get@./locks do "
     "put ./leases" CURATORS_NODE "-lease-0000000001 ephemeral, remove ./locks" CURATORS_NODE
     "-lock-0000000001; wait a; a failed protocol"},
    {"CuratorsSemaphore_QuestionNotAnswered_IsNotTakenForEmpty", "",
     "put ./leases" CURATORS_NODE "-lease-0000000001 ephemeral; on get lose_answer; wait a; a waits; 1s; "
     "a failed protocol"},
    {"CuratorsSemaphore_ThatComesWhileAHerdWaits_IsRefused", "strategy=sequential-herd",
     "member h; wait a; a busy 1; put ./leases" CURATORS_NODE "-lease-0000000001 ephemeral; remove h; run; "
     "a failed protocol"},

    // --- Nodes that must go, whatever becomes of the requests and of the session ---
    // Hazards 10 and 21.
    {"Removal_NotSentInTime_GoesOnInTheBackground", "",
     "wait a; disconnect; run; release a pending; 1999ms; release a pending; 1ms; release a failed unavailable did not "
     "confirm in time that /dlock/lock; reconnect; 1s; own 0"},
    // The servers keep the nodes of a session that this client has given up.
    {"Node_OfAnEarlierSession_IsRemoved", "",
     "wait a; remember n; disconnect; run; release a pending; 20s; gone n; release a failed unavailable"},
    {"Removal_Refused_IsTriedOnAndWarnedOfOnce", "",
     "wait a; mark; on remove* refuse; release a pending; 1s; warnings 0; calm; on remove* forbid; 5s; warnings 1 a "
     "node that is not needed any more cannot be removed before the session ends: ; asked remove 2-50; calm; 5s; own "
     "0; warnings 1"},
    {"Close_WaitsForARemovalThatTheEndOfTheSessionWouldNotDo", "",
     "wait a; remember n; disconnect; run; release a pending; on remove* refuse; 20s; close; run; exists n; calm; 2s; "
     "is_closed; gone n"},
    // Hazard 17: a session that is left to expire keeps its nodes.
    {"Close_WaitsForTheConnection_WhileSomethingIsToBeRemoved", "",
     "wait a; wait b; disconnect; run; give_up b; close; 1s; is_not_closed; reconnect; 1s; is_closed"},
    {"Close_WaitsForNoRemovalThatTheEndOfTheSessionDoes", "",
     "wait a; remember n; on remove* refuse; release a pending; close; run; is_closed; gone n"},
    {"Create_InFlight_AnsweredThatNothingIsThere_NeedsNothing", "",
     "{remove place|on create refuse|on create forbid}; start a; give_up a; mark; run; 20s; asked children 0; asked "
     "remove 0; asked create 0"},
    {"Create_NotCarriedOut_IsLookedForOnce", "",
     "on create lose_request; wait a; mark; give_up a; run; asked children 1; 20s; asked children 1"},
    // Hazard 24: the list may come from a server that does not know yet what another one has carried out.
    {"Create_NotAnswered_ListIsBelievedOnlyBehindAWrite", "",
     "on create lose_request; wait a; on heartbeat lose_request; give_up a; run; late; 1s; gone late"},
    // A late request of the old session may still be carried out.
    {"Create_OfTheOldSession_IsLookedForUntilThatMustBeOver", "",
     "on create lose_request do disconnect; wait a; give_up a; 16s; late; 1100ms; gone late; mark; 9s; asked children "
     "0"},
    {"Create_OfTheOldSession_IsNotLookedForForEver", "",
     "on create lose_request do disconnect; wait a; give_up a; 22s; mark; 5s; asked children 4-6; 5s; mark; 20s; asked "
     "children 0"},
    // Each look costs a write and a list.
    {"Create_OfTheOldSession_LaterSessionsDoNotProlongTheSearch", "",
     "on create lose_request do disconnect; wait a; give_up a; 25s; expire; 7s; mark; 20s; asked children 0"},
    {"Create_OfTheOldSession_ClosingDoesNotWaitForIt", "",
     "on create lose_request do disconnect; wait a; give_up a; 16s; close; run; is_closed"},
};

INSTANTIATE_TEST_SUITE_P(, QueueScenario, testing::ValuesIn(queue_rows), name_of);

}  // namespace
}  // namespace dlock::zookeeper

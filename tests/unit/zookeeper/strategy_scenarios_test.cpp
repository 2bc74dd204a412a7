// Each strategy: what the three have in common; and, for those that name it, strategy=ephemeral.
#include <gtest/gtest.h>

#include "scenario.hpp"

namespace dlock::zookeeper {
namespace {

class StrategyScenario : public testing::TestWithParam<Scenario> {};

TEST_P(StrategyScenario, Holds) {
  if (std::string(GetParam().query).starts_with("strategy=")) return run_scenario(GetParam());
  for (const char* strategy : {"sequential", "sequential-herd", "ephemeral"}) {
    run_scenario(GetParam(), "strategy=" + std::string(strategy));
  }
}

constexpr Scenario strategy_rows[] = {
    // --- Losses; each client holds one lock more, from when it connected ---
    // Hazards 5 and 6: by the clock of the client, no later than what was promised.
    {"Loss_WithoutNews_IsReportedByTheClientsClock", "", "wait a; disconnect; run; 9897ms; lost 0; 1ms; lost 2"},
    // Hazard 4.
    // Shows: renewal
    {"SessionOver_LosesAllThatItHeldForGood", "",
     "wait a; wait b elsewhere; expire; 5s; lost 3; release a not_owner; 1min; lost 3; wait c; c granted; c newer a"},

    {"Holder_CredentialsRefusedAtAReconnection_LosesItsLock", "",
     "wait a; a granted; wait b; dial refuse_auth; disconnect; run; lost 0; reconnect; run; lost 2 authentication "
     "failed; own 0; b failed access_denied; 1min; dialled 1; wait c; 1s; c failed access_denied; dial accept; wait d; "
     "2s; d granted"},

    // --- Waiting ---
    // Hazard 7.
    // Hazard: the node before ours goes between list and watch: get with a watch, never exists
    {"Holder_GoneBeforeItIsWatched_IsNotWaitedFor", "", "member h; on watch do remove h; wait a; a granted"},
    // Hazard 8.
    {"HolderData_Changed_IsNoHandOver", "",
     "member h; wait a; set h __REVOKE__; run; a waits; watches 1-2; remove h; run; a granted"},
    {"LostEvent_IsMadeUpFor", "", "member h; wait a; lose_events; remove h; keep_events; run; a waits; 45s; a granted"},
    {"Waiter_WithoutAConnection_WaitsAndIsToldWhy", "",
     "dial silence; fresh; wait a; 4s; a silent; 2s; a unreachable 1-9; wait b; b unreachable 1; dial accept; "
     "reconnect; 2s; a granted"},
    {"Try_WithoutAConnection_SaysWhatBrokeIt", "",
     "disconnect; run; try a; 1499ms; a silent; 1ms; a unreachable 1 fake: disconnected"},
    {"RightsOrCredentialsMissing_EndAnAcquire", "",
     "{on create forbid|dial refuse_auth; fresh}; {wait|try} a; 100ms; a failed access_denied; run; own 0"},

    // --- Grants; hazards 2 and 6 ---
    // The process was stopped: the answers are there before anything says that the session is over.
    // Shows: nothing-guessed
    {"Grant_AnsweredAfterTheSessionsDeadline_IsNone", "", "start a; sleep 11s; 5s; a granted; own 1"},

    // --- Giving up; hazard 9: after any number of tasks ---
    {"Waiter_GivesUpAtAnyMoment_LeavesNothing", "",
     "{|member h}; {|on create lose_answer|on create hold}; start a; tasks {0..11}; give_up a; release_answers; 1s; "
     "own 0"},
    // Hazard: an orphan of a cancelled acquire or failed release: removals are repeated until certain
    {"Waiter_GivesUpWhileDisconnected_LeavesNothing", "",
     "{|member h}; start a; tasks {0..11}; disconnect; tasks 1; give_up a; 1s; reconnect; 1s; own 0"},

    // --- Releases; hazards 10 and 21 ---
    {"Release_NotAnsweredInTime_GoesOnInTheBackground", "",
     "wait a; on remove* hold; release a pending; 1999ms; release a pending; 1ms; release a failed ambiguous did not "
     "confirm in time; calm; disconnect; run; reconnect; 1s; own 0"},
    {"Release_AnswerLostWithTheSession_IsAmbiguousAndLeavesTheNext", "",
     "wait a; on remove hold; release a pending; expire; member x; calm; 1s; release a failed ambiguous the answer to "
     "the release was lost, and the session has ended since; exists x"},

    // --- Servers that refuse, by closing the connection, or for now ---
    // A proxy lets heartbeats pass, and closes the connection upon each other request, or only upon creates.
    // Hazard: a server refuses a client and closes the connection
    {"Connection_ClosedUponEachRequest_IsReportedPerReason", "",
     "wait h elsewhere; connections connected; repeat 2 on {any|create}* lose_request do disconnect, mark, start a, "
     "reconnects 60s, asked any 20-200, a unreachable 1-999 requests about locks, connections reconnecting "
     "reconnecting, calm, reconnect, 10s, a granted, connections connected, release a; lost 0"},
    {"Connection_NoAnswerAboutALockYet_IsNotReported", "",
     "connections connected; fresh; on create hold; wait a; connections; release_answers; run; connections connected"},
    {"Refusal_ThatMayEnd_IsWaitedForAndNamedOnce", "",
     "wait h elsewhere; on create* refuse; wait a; try b; 30s; b failed unavailable; a waits; a reasons 1; release h; "
     "calm; 5s; a granted"},
    // The core reports a loss up to that much before the end.
    {"Session_ThatEndsWithinTheLeadOfALoss_GrantsNothing", "",
     "on heartbeat* refuse; 9893ms; wait a; a waits; calm; 5s; a granted"},
    // The session is a new one, so that nothing but the age of the request could be in the way.
    {"Outage_LongerThanTheSession_IsFollowedByAGrantAtOnce", "",
     "dial refuse; fresh; wait a; 60min; dial accept; reconnect; run; 2s; a granted; a lasts 5s"},
    {"NodeOfZookeeperItself_IsNoLock", "&prefix=", "{wait|try} a zookeeper; a failed invalid_argument"},
    // Hazard 26.
    {"Chroot_Missing_IsNamed", "{|&prefix=}",
     "remove /dlock; remove /warm-up; remove /; fresh /apps/mine; {wait|try} a; a failed invalid_argument /apps/mine"},

    // --- Observers of elections ---
    {"Observer_LearnsOfEachChange_AndAsksNothingMeanwhile", "",
     "as election; observe; repeat 2 wait a, a granted, notified, release a, notified; remove place; settle; mark; "
     "2min; asked any@place 0; not_notified; wait b; b granted; notified; stop_observing; release b; not_notified"},
    // Its questions are sent behind the next watch.
    {"Observer_NotifiedOfAChange_HasWatchedAgain", "",
     "as election; wait a; observe; mark; release a; notified; watched_again"},

    // --- One node, created by the client that holds the lock ---
    {"FreeLock_Acquired_CostsOneRequest", "strategy=ephemeral",
     "mark; {wait|try} a; a granted; sent create; release a; gone place; wait b; b granted; b newer a"},
    {"Lock_ThatComesAndGoes_EndsATry", "strategy=ephemeral",
     "on create* do put place ephemeral other; on get* do remove place; try a; a failed unavailable keeps appearing "
     "and disappearing; start b; 10ms; b unreachable 1-9; calm; 5s; b granted"},
    // Hazards 23 and 24: a server that lags behind is brought up to date first.
    {"Try_OfALockThatWasHeld_LooksFirst", "strategy=ephemeral",
     "put place ephemeral other; mark; try a; a busy 1; sent create get; mark; try b; b busy 1; sent sync get; remove "
     "place; try c; c granted; release c; mark; try d; d granted; sent create"},

    // --- Outcomes that are not known; hazards 1 to 3: whose node is it? ---
    {"Create_AnswerLost_IsFoundBehindAWrite", "strategy=ephemeral",
     "on create lose_answer; wait a; a unreachable 1; mark; 100ms; a granted; sent get; asked heartbeat 1; release a; "
     "gone place"},
    // Hazard: two locks of one session: a uuid or owner id per acquire
    {"TwoOfOneSession_NeverTakeTheSameNodeForTheirs", "strategy=ephemeral",
     "on create lose_answer; on create lose_answer; start a; start b; 5s; a granted; b waits"},
    {"AnotherLock_OfOurSession_IsBusy", "strategy=ephemeral",
     "wait h; h granted; on create lose_answer; {wait|start} a; 5s; a waits; give_up a; 5s; h granted"},
    // Shows: nothing-guessed
    {"Node_OfAnotherSession_IsNotTakenForOurs", "strategy=ephemeral",
     "on create lose_request; wait a; put place ephemeral other; 1s; a waits; a unreachable 1; mark; remove place; "
     "run; a granted; sent create"},
    {"Create_AnswerLostBeforeTheSessionEnds_IsNotLookedFor", "strategy=ephemeral",
     "on create lose_answer; wait a; expire; mark; 1s; a granted; asked look 0"},
    {"Node_ThatIsBeingReleased_IsNotClaimed", "strategy=ephemeral",
     "wait h; h granted; on create hold; wait a; disconnect; release h now; 100ms; reconnect; 1s; a granted"},
    {"Parent_ThatMayHaveBeenMade_IsNoDoubtAboutTheLock", "strategy=ephemeral&prefix=/a/b",
     "remove /a; on create@/a lose_answer; try a; a failed unavailable"},
    {"Parents_MadeTooLate_MakeNoLock", "strategy=ephemeral&prefix=/a/b",
     "remove /a; on create@/a hold; start a; run; give_up a; release_answers; run; gone /a/b/lock"},

    // --- Connections and giving up ---
    // Not by the number of the node that it had in the session before.
    {"Waiter_OfALaterSessionGivesUp_LeavesNothing", "strategy=ephemeral",
     "start a; on create lose_answer; on get* hold; sleep 11s; 2s; exists place; give_up a; calm; release_answers; 1s; "
     "gone place"},
    // Shows: hole zookeeper-stale-release
    {"Waiter_GivesUp_LeavesAnothersNode", "strategy=ephemeral",
     "on create lose_request; wait a; put place ephemeral other; give_up a; 5s; exists place"},
    {"Waiter_GivesUpAndDataWrittenOver_RemovesItsNodeByTheNumber", "strategy=ephemeral",
     "on create lose_answer; wait a; on remove lose_request; give_up a; run; set place settings; 1s; gone place"},

    // --- Releases; the hazards of a path that other clients use ---
    // Shows: only-the-owner, hole zookeeper-stale-release
    {"Release_Stale_LeavesTheNextHolder", "strategy=ephemeral",
     "wait a; remove place; put place ephemeral other; release a not_owner; exists place"},
    {"Node_RemovedByAnotherClient_IsLost", "strategy=ephemeral",
     "wait a; {10ms|5s}; lost 0; remove place; {|put place ephemeral other}; 1s; lost 1; release a not_owner"},
    {"Release_DataWrittenOver_IsByTheNodesNumber", "strategy=ephemeral",
     "wait a; set place settings; release a; gone place"},
    // A server that lags behind may still show a node that is removed already, while another one has its place.
    {"Release_NotAnswered_IsRepeatedOnlyBehindAWrite", "strategy=ephemeral",
     "wait a; mark; on remove lose_request; release a pending; asked heartbeat 0; sent get remove; 1s; release a; "
     "asked heartbeat 1; gone place"},
    {"Release_NotCompared_RemovesNothing", "strategy=ephemeral",
     "wait a; remove place; put place ephemeral other; on get {refuse|forbid|lose_answer}; release a pending; 1s; "
     "release a not_owner; exists place"},

    // --- What else is there ---
    // Removing it would remove the lock of whoever is faster.
    // Shows: hole zookeeper-former-queue
    {"Container_ThatAQueueLeftBehind_IsLeftToTheServer", "strategy=ephemeral",
     "put place; mark; try a; a failed unavailable /dlock/lock; wait b; b unreachable 1; 1min; b waits; asked remove "
     "0; remove place; 1s; b granted"},
    {"Queue_InPlaceOfTheNode_IsRefused", "strategy=ephemeral",
     "put ./_c_1-lock- ephemeral numbered; wait a; a failed protocol queue"},
    {"Data_OfAnotherProgram_IsLeftAlone", "strategy=ephemeral",
     "put place settings; wait a; a failed protocol; exists place"},
};

INSTANTIATE_TEST_SUITE_P(, StrategyScenario, testing::ValuesIn(strategy_rows), name_of);

}  // namespace
}  // namespace dlock::zookeeper

// strategy=ephemeral: one node, created by whoever holds the lock. What both strategies have in common is in
// queue_scenarios_test.cpp.
#include <gtest/gtest.h>

#include "scenario.hpp"

namespace dlock::zookeeper {

namespace {

class EphemeralScenario : public testing::TestWithParam<Scenario> {};

TEST_P(EphemeralScenario, Holds) {
  const Scenario& row = GetParam();
  const std::string query = "strategy=ephemeral" + std::string(row.query);
  run_scenario<AcquireScript>({row.name, query.c_str(), row.script});
}

constexpr Scenario ephemeral_rows[] = {
    {"FreeLock_Acquired_CostsOneRequest", "",
     "mark; {wait|try} a; a granted; sent create; release a; gone place; wait b; b granted; b newer a"},
    {"Waiters_AreWokenAgainAndAgain", "",
     "put place ephemeral other; wait a; wait b; wait c; a busy 1; watches 1; remove place; run; a granted; b waits; "
     "release a; b granted; c waits; release b; c granted; release c; gone place"},
    // Hazard 7.
    {"Holder_GoneBetweenCreateAndWatch_IsNotWaitedFor", "",
     "put place ephemeral other; on watch do remove place; wait a; a granted"},
    {"Waiter_OvertakenBetweenCreateAndWatch_WatchesAgain", "",
     "put place ephemeral other; on watch do remove place, on create do put place ephemeral other; wait a; 1s; a "
     "waits; exists place; remove place; run; a granted"},
    {"Lock_ThatComesAndGoes_EndsATry", "",
     "on create* do put place ephemeral other; on get* do remove place; try a; "
     "a failed unavailable keeps appearing and disappearing; start b; 10ms; b unreachable 1-9; calm; 5s; b "
     "granted"},
    // Hazards 23 and 24: a server that lags behind is brought up to date first.
    {"Try_OfALockThatWasHeld_LooksFirst", "",
     "put place ephemeral other; mark; try a; a busy 1; sent create get; mark; try b; b busy 1; sent sync get; remove "
     "place; try c; c "
     "granted; "
     "release c; mark; try d; d granted; sent create"},
    {"LostEvent_OfTheHolder_IsMadeUpFor", "",
     "put place ephemeral other; wait a; lose_events; remove place; keep_events; run; a waits; 40s; a granted"},
    {"HolderData_Changed_IsNoHandOver", "",
     "put place ephemeral other; wait a; set place __REVOKE__; run; a waits; remove place; run; a granted"},

    // --- Outcomes that are not known; hazards 1 to 3: whose node is it? ---
    {"Create_AnswerLost_IsFoundBehindAWrite", "",
     "on create lose_answer; wait a; a unreachable 1; mark; 100ms; a granted; sent get; asked heartbeat 1; release a; "
     "gone place"},
    {"Create_AnswerLostAndNodeGone_IsRepeated", "",
     "on create lose_answer; wait a; remove place; 100ms; a granted; exists place"},
    {"Look_NotAnswered_FindsNothingOut", "",
     "on create lose_answer; on get {lose_answer|lose_request|refuse}; wait a; 500ms; a granted"},
    {"Look_UnderWay_IsNotRepeatedByThePauseBeforeIt", "",
     "on create lose_answer do disconnect; wait a; on get hold; mark; reconnect; run; 1s; asked look 1; "
     "release_answers; "
     "run; a granted"},
    {"TwoOfOneSession_NeverTakeTheSameNodeForTheirs", "",
     "on create lose_answer; on create lose_answer; start a; start b; 5s; a granted; b waits"},
    {"AnotherLock_OfOurSession_IsBusy", "",
     "wait h; h granted; on create lose_answer; {wait|start} a; 5s; a waits; give_up a; 5s; h granted"},
    {"Node_OfAnotherSession_IsNotTakenForOurs", "",
     "on create lose_request; wait a; put place ephemeral other; 1s; a waits; a unreachable 1; mark; remove place; "
     "run; "
     "a granted; sent create"},
    {"Create_AnswerLostBeforeTheSessionEnds_IsNotLookedFor", "",
     "on create lose_answer; wait a; expire; mark; 1s; a granted; asked look 0"},
    {"Create_OfTheLastSession_IsNoGrant", "", "on create hold; wait a; expire; 1s; a granted"},
    {"Grant_AnsweredAfterTheConnectionBroke_IsVerifiedFirst", "",
     "on create do disconnect; wait a; 1s; exists place; a waits; mark; reconnect; 1s; a granted; asked create 0"},
    {"Grant_AnsweredAfterTheSessionsDeadline_IsNone", "", "start a; sleep 11s; 5s; a granted"},
    {"Node_ThatIsBeingReleased_IsNotClaimed", "",
     "wait h; h granted; on create hold; wait a; disconnect; release h now; 100ms; reconnect; 1s; a granted"},
    {"Parent_ThatMayHaveBeenMade_IsNoDoubtAboutTheLock", "&prefix=/a/b",
     "remove /a; on create@/a lose_answer; try a; a failed unavailable"},
    {"Parents_MadeTooLate_MakeNoLock", "&prefix=/a/b",
     "remove /a; on create@/a hold; start a; run; give_up a; release_answers; run; gone /a/b/lock"},
    {"Try_CreateAnswerLost_IsAmbiguousAndTakenBack", "",
     "on create lose_answer; try a; a failed ambiguous; run; gone place"},

    // --- Connections ---
    {"Waiter_Disconnected_GoesOn", "",
     "put place ephemeral other; wait a; disconnect; 1s; remove place; reconnect; 1s; a granted; wait b; expire; "
     "2s; b granted"},
    {"Waiter_ConnectionBrokenBehindAnyRequest_GoesOn", "",
     "put place ephemeral other; on any+{0..3} do disconnect; start a; run; set place x; run; reconnect; 1s; a waits; "
     "remove place; 1s; reconnect; 1s; a granted"},
    {"Holder_CredentialsRefusedAtAReconnection_LosesItsLock", "",
     "wait a; a granted; wait b; dial refuse_auth; disconnect; reconnect; run; lost 2 authentication failed; gone "
     "place; "
     "b failed access_denied"},
    {"Waiter_WithoutAConnection_WaitsAndIsToldWhy", "",
     "dial silence; fresh; wait a; 4s; a silent; 2s; a unreachable 1-9; dial accept; reconnect; 2s; a granted"},
    {"Try_WithoutAConnection_SaysWhatBrokeIt", "",
     "disconnect; run; try a; 1499ms; a silent; 1ms; a unreachable 1 fake: disconnected"},

    // --- Giving up; hazard 9 ---
    {"Waiter_GivesUpAtAnyMoment_LeavesNothing", "",
     "{|on create lose_answer|on create hold}; start a; tasks {0..8}; give_up a; release_answers; 1s; gone place"},
    // Not by the number of the node that it had in the session before.
    {"Waiter_OfALaterSessionGivesUp_LeavesNothing", "",
     "start a; on create lose_answer; on get* hold; sleep 11s; 2s; exists place; give_up a; calm; release_answers; 1s; "
     "gone place"},
    {"Waiter_GivesUp_LeavesAnothersNode", "",
     "on create lose_request; wait a; put place ephemeral other; give_up a; 5s; exists place"},

    {"Waiter_GivesUpAndDataWrittenOver_RemovesItsNodeByTheNumber", "",
     "on create lose_answer; wait a; on remove lose_request; give_up a; run; set place settings; 1s; gone place"},

    // --- Releases; the hazards of a path that other clients use ---
    {"Release_Stale_TouchesNobodysLock", "",
     "wait a; remove place; put place ephemeral other; release a not_owner; exists place"},
    {"Release_DataWrittenOver_IsByTheNodesNumber", "", "wait a; set place settings; release a; gone place"},
    // A server that lags behind may still show a node that is removed already, while another one has its place.
    {"Release_NotAnswered_IsRepeatedOnlyBehindAWrite", "",
     "wait a; mark; on remove lose_request; release a pending; asked heartbeat 0; sent get remove; 1s; release a; "
     "asked heartbeat 1; gone place"},
    {"Release_NotCompared_RemovesNothing", "",
     "wait a; remove place; put place ephemeral other; on get {refuse|forbid|lose_answer}; release a pending; 1s; "
     "release a not_owner; exists place"},
    {"Release_NotAnsweredInTime_GoesOnInTheBackground", "",
     "wait a; on remove* hold; release a pending; 1999ms; release a pending; 1ms; release a failed ambiguous; calm; "
     "disconnect; run; reconnect; 1s; gone place"},
    {"Release_AnswerLostWithTheSession_IsAmbiguousAndLeavesTheNext", "",
     "wait a; on remove hold; release a pending; expire; put place ephemeral other; calm; 1s; release a failed "
     "ambiguous the answer to the release was lost; exists place"},

    // --- What else is there ---
    // Removing it would remove the lock of whoever is faster.
    {"Container_ThatAQueueLeftBehind_IsLeftToTheServer", "",
     "put place; mark; try a; a failed unavailable /dlock/lock; wait b; b unreachable 1; 1min; b waits; asked remove "
     "0; "
     "remove place; 1s; b granted"},
    {"Queue_InPlaceOfTheNode_IsRefused", "", "member h; wait a; a failed protocol queue"},
    {"Data_OfAnotherProgram_IsLeftAlone", "", "put place settings; wait a; a failed protocol; exists place"},
    {"MissingRights_EndAnAcquire", "", "on create forbid; wait a; a failed access_denied"},
};

INSTANTIATE_TEST_SUITE_P(Rows, EphemeralScenario, testing::ValuesIn(ephemeral_rows), name_of);

}  // namespace

}  // namespace dlock::zookeeper

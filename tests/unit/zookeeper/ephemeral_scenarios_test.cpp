// strategy=ephemeral: one node, created by whoever holds the lock. What both strategies have in common is in
// queue_scenarios_test.cpp.
#include <gtest/gtest.h>

#include "scenario.hpp"

namespace dlock::zookeeper {

namespace {

class EphemeralScenario : public testing::TestWithParam<Scenario> {};

TEST_P(EphemeralScenario, Holds) {
  run_scenario(GetParam(), "strategy=ephemeral");
}

constexpr Scenario ephemeral_rows[] = {
    {"FreeLock_Acquired_CostsOneRequest", "",
     "mark; {wait|try} a; a granted; sent create; release a; gone place; wait b; b granted; b newer a"},
    {"Lock_ThatComesAndGoes_EndsATry", "",
     "on create* do put place ephemeral other; on get* do remove place; try a; a failed unavailable keeps appearing "
     "and disappearing; start b; 10ms; b unreachable 1-9; calm; 5s; b granted"},
    // Hazards 23 and 24: a server that lags behind is brought up to date first.
    {"Try_OfALockThatWasHeld_LooksFirst", "",
     "put place ephemeral other; mark; try a; a busy 1; sent create get; mark; try b; b busy 1; sent sync get; remove "
     "place; try c; c granted; release c; mark; try d; d granted; sent create"},

    // --- Outcomes that are not known; hazards 1 to 3: whose node is it? ---
    {"Create_AnswerLost_IsFoundBehindAWrite", "",
     "on create lose_answer; wait a; a unreachable 1; mark; 100ms; a granted; sent get; asked heartbeat 1; release a; "
     "gone place"},
    {"TwoOfOneSession_NeverTakeTheSameNodeForTheirs", "",
     "on create lose_answer; on create lose_answer; start a; start b; 5s; a granted; b waits"},
    {"AnotherLock_OfOurSession_IsBusy", "",
     "wait h; h granted; on create lose_answer; {wait|start} a; 5s; a waits; give_up a; 5s; h granted"},
    {"Node_OfAnotherSession_IsNotTakenForOurs", "",
     "on create lose_request; wait a; put place ephemeral other; 1s; a waits; a unreachable 1; mark; remove place; "
     "run; a granted; sent create"},
    {"Create_AnswerLostBeforeTheSessionEnds_IsNotLookedFor", "",
     "on create lose_answer; wait a; expire; mark; 1s; a granted; asked look 0"},
    {"Node_ThatIsBeingReleased_IsNotClaimed", "",
     "wait h; h granted; on create hold; wait a; disconnect; release h now; 100ms; reconnect; 1s; a granted"},
    {"Parent_ThatMayHaveBeenMade_IsNoDoubtAboutTheLock", "&prefix=/a/b",
     "remove /a; on create@/a lose_answer; try a; a failed unavailable"},
    {"Parents_MadeTooLate_MakeNoLock", "&prefix=/a/b",
     "remove /a; on create@/a hold; start a; run; give_up a; release_answers; run; gone /a/b/lock"},

    // --- Connections and giving up ---
    // Not by the number of the node that it had in the session before.
    {"Waiter_OfALaterSessionGivesUp_LeavesNothing", "",
     "start a; on create lose_answer; on get* hold; sleep 11s; 2s; exists place; give_up a; calm; release_answers; 1s; "
     "gone place"},
    {"Waiter_GivesUp_LeavesAnothersNode", "",
     "on create lose_request; wait a; put place ephemeral other; give_up a; 5s; exists place"},
    {"Waiter_GivesUpAndDataWrittenOver_RemovesItsNodeByTheNumber", "",
     "on create lose_answer; wait a; on remove lose_request; give_up a; run; set place settings; 1s; gone place"},

    // --- Releases; the hazards of a path that other clients use ---
    {"Release_Stale_LeavesTheNextHolder", "",
     "wait a; remove place; put place ephemeral other; release a not_owner; exists place"},
    {"Node_RemovedByAnotherClient_IsLost", "",
     "wait a; {10ms|5s}; lost 0; remove place; {|put place ephemeral other}; 1s; lost 1; release a not_owner"},
    {"Release_DataWrittenOver_IsByTheNodesNumber", "", "wait a; set place settings; release a; gone place"},
    // A server that lags behind may still show a node that is removed already, while another one has its place.
    {"Release_NotAnswered_IsRepeatedOnlyBehindAWrite", "",
     "wait a; mark; on remove lose_request; release a pending; asked heartbeat 0; sent get remove; 1s; release a; "
     "asked heartbeat 1; gone place"},
    {"Release_NotCompared_RemovesNothing", "",
     "wait a; remove place; put place ephemeral other; on get {refuse|forbid|lose_answer}; release a pending; 1s; "
     "release a not_owner; exists place"},
    {"Release_AnswerLostWithTheSession_IsAmbiguousAndLeavesTheNext", "",
     "wait a; on remove hold; release a pending; expire; put place ephemeral other; calm; 1s; release a failed "
     "ambiguous the answer to the release was lost; exists place"},

    // --- What else is there ---
    // Removing it would remove the lock of whoever is faster.
    {"Container_ThatAQueueLeftBehind_IsLeftToTheServer", "",
     "put place; mark; try a; a failed unavailable /dlock/lock; wait b; b unreachable 1; 1min; b waits; asked remove "
     "0; remove place; 1s; b granted"},
    {"Queue_InPlaceOfTheNode_IsRefused", "", "put ./_c_1-lock- ephemeral numbered; wait a; a failed protocol queue"},
    {"Data_OfAnotherProgram_IsLeftAlone", "", "put place settings; wait a; a failed protocol; exists place"},
};

INSTANTIATE_TEST_SUITE_P(Rows, EphemeralScenario, testing::ValuesIn(ephemeral_rows), name_of);

}  // namespace

}  // namespace dlock::zookeeper

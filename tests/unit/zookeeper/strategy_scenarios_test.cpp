// Each strategy: what the three have in common.
#include <gtest/gtest.h>

#include "scenario.hpp"

namespace dlock::zookeeper {

namespace {

class StrategyScenario : public testing::TestWithParam<Scenario> {};

TEST_P(StrategyScenario, Holds) {
  for (const char* strategy : {"sequential", "sequential-herd", "ephemeral"}) {
    run_scenario(GetParam(), "strategy=" + std::string(strategy));
  }
}

constexpr Scenario strategy_rows[] = {
    // --- Losses; each client holds one lock more, from when it connected ---
    // Hazards 5 and 6: by the clock of the client, no later than what was promised.
    {"Loss_WithoutNews_IsReportedByTheClientsClock", "", "wait a; disconnect; run; 9897ms; lost 0; 1ms; lost 2"},
    // Hazard 4.
    {"SessionOver_LosesAllThatItHeldForGood", "",
     "wait a; wait b elsewhere; expire; 5s; lost 3; release a not_owner; 1min; lost 3; wait c; c granted; c newer a"},

    {"Holder_CredentialsRefusedAtAReconnection_LosesItsLock", "",
     "wait a; a granted; wait b; dial refuse_auth; disconnect; run; lost 0; reconnect; run; lost 2 authentication "
     "failed; own 0; b failed access_denied; 1min; dialled 1; wait c; 1s; c failed access_denied; dial accept; wait d; "
     "2s; d granted"},

    // --- Waiting ---
    // Hazard 7.
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
    {"Grant_AnsweredAfterTheSessionsDeadline_IsNone", "", "start a; sleep 11s; 5s; a granted; own 1"},

    // --- Giving up; hazard 9: after any number of tasks ---
    {"Waiter_GivesUpAtAnyMoment_LeavesNothing", "",
     "{|member h}; {|on create lose_answer|on create hold}; start a; tasks {0..11}; give_up a; release_answers; 1s; "
     "own 0"},
    {"Waiter_GivesUpWhileDisconnected_LeavesNothing", "",
     "{|member h}; start a; tasks {0..11}; disconnect; tasks 1; give_up a; 1s; reconnect; 1s; own 0"},

    // --- Releases; hazards 10 and 21 ---
    {"Release_NotAnsweredInTime_GoesOnInTheBackground", "",
     "wait a; on remove* hold; release a pending; 1999ms; release a pending; 1ms; release a failed ambiguous did not "
     "confirm in time; calm; disconnect; run; reconnect; 1s; own 0"},

    // --- Servers that refuse, by closing the connection, or for now ---
    // A proxy lets heartbeats pass, and closes the connection upon each other request, or only upon creates.
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
};

INSTANTIATE_TEST_SUITE_P(, StrategyScenario, testing::ValuesIn(strategy_rows), name_of);

}  // namespace

}  // namespace dlock::zookeeper

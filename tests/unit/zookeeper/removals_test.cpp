// Nodes that must go, whatever becomes of the requests and of the session: releases, and acquires that were given up.
// For a path that other clients use see ephemeral_scenarios_test.cpp.
#include "backends/zookeeper/nodes/removals.hpp"

#include <gtest/gtest.h>

#include <string>

#include "scenario.hpp"

namespace dlock::zookeeper {

namespace {

class RemovalScenario : public testing::TestWithParam<Scenario> {};

TEST_P(RemovalScenario, Holds) {
  run_scenario(GetParam());
}

constexpr Scenario removal_rows[] = {
    // Hazards 10 and 21.
    {"Removal_NotSentInTime_GoesOnInTheBackground", "",
     "wait a; disconnect; run; release a pending; 1999ms; release a pending; 1ms; release a failed unavailable did not "
     "confirm in time that /dlock/lock; reconnect; 1s; own 0"},
    {"Removal_NotAnsweredBeforeTheSessionEnds_IsAmbiguous", "",
     "wait a; on remove hold; release a pending; expire; calm; 1s; release a failed ambiguous the answer to the "
     "release was lost, and the session has ended since"},
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

INSTANTIATE_TEST_SUITE_P(, RemovalScenario, testing::ValuesIn(removal_rows), name_of);

TEST(OwnerInData, Owner_IsFoundBehindAnyHolder) {
  const OwnerId owner(1, 2);
  const std::string digits = owner.to_string();
  for (const std::string holder : {"", "host:1:x", "host:1:x\nvalue", "\n"}) {
    const std::string data = data_of(holder, owner);
    EXPECT_TRUE(is_of(data, owner));
    EXPECT_FALSE(is_of(data, {1, 3}));
    EXPECT_EQ(holder_of(data), holder);
  }
  EXPECT_EQ(data_of("host:1:x\nvalue", owner), "host:1:x " + digits + "\nvalue") << "older clients read the value";
  // From an earlier version, or from another program.
  for (const std::string& data : {std::string(), std::string("host:1:x\nvalue"), digits, "x" + digits,
                                  "host:1:x " + std::string(32, 'z'), "host:1:x\nvalue " + digits}) {
    EXPECT_EQ(holder_of(data), data);
  }
}

}  // namespace

}  // namespace dlock::zookeeper

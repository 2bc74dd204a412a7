// What the fixtures of this tree leave untested; see Subject::untested.
#pragma once

#include <string>
#include <vector>

namespace dlock::conformance {

// The clock of a server cannot be stepped.
inline std::vector<std::string> untested_without_stepped_clock() {
  return {
      "Contract.C02_HeldEndsAtValidUntilWithoutBeingTold",
      "Contract.C03_AKilledHoldIsSignalledWithinItsLease",
      "Contract.C03_TheEndOfALeaseIsSeenAtOnceByWhoeverLooks",
      "Contract.C03_TheEndOfALeaseIsSignalledNoLaterThanValidUntil",
      "Contract.C04_TokensGrowWhenTheWallClockIsSetBack",
      "Contract.C08_AWaitEndsExactlyAtItsDeadline",
      "Contract.C10_AClockThatJumpsPastTheLeaseEndsIt",
      "Contract.C10_ALeaseStaysHeldForAsLongAsTheProcessRuns",
      "Contract.C10_ALeaseSurvivesAShortDisturbance",
      "Contract.C11_AWaiterIsWokenWhileTimeStandsStill",
  };
}

}  // namespace dlock::conformance

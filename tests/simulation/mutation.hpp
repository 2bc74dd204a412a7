// The ways in which what is simulated can be broken, to see that it would be noticed.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace dlock::simulation {

enum class Mutation : std::uint8_t {
  none,                     // correct
  token_repeats,            // now and then a lease carries the token of the one before
  token_of_wall_clock,      // tokens are what the client's wall clock shows, which may be stepped back
  blind_release,            // a release frees the lock without comparing the owner
  release_lies,             // a release of a lost lock says that it was still ours
  release_waits_for_lease,  // a release reports success, but the lock stays until its lease expires
  renewal_revives,          // a renewal that finds the lock lost takes it back from any holder
  lease_from_answer,        // a lease counts from the answer, not from before the request
  no_drift_margin,          // a lease counts in full, as if all clocks ran alike
  early_expiry,             // the service keeps locks for half of their lease
  two_holders,              // now and then a busy lock is granted, too
  late_loss,                // the program learns of a loss a second after it
  lost_wake_up,             // a waiter is never told that its turn has come
  late_deadline,            // waits go on for three seconds after their deadline
  deaf_to_cancel,           // a cancelled wait goes on
  residue_on_give_up,       // a waiter that gives up stays in the queue
  immortal_lease,           // the service keeps locks for an hour, whatever lease was asked for
  blind_resource,           // the resource takes every write
  stale_count,              // a request for a permit goes by the number taken at the request before
  permit_of_another,        // a release gives back a permit, whosever it is
  writer_out_of_line,       // a waiting writer keeps no readers out
  two_step_election,        // a candidate looks whether there is a leader, and then makes itself one
};
inline constexpr std::array<std::string_view, 22> mutation_names{"none",
                                                                 "token_repeats",
                                                                 "token_of_wall_clock",
                                                                 "blind_release",
                                                                 "release_lies",
                                                                 "release_waits_for_lease",
                                                                 "renewal_revives",
                                                                 "lease_from_answer",
                                                                 "no_drift_margin",
                                                                 "early_expiry",
                                                                 "two_holders",
                                                                 "late_loss",
                                                                 "lost_wake_up",
                                                                 "late_deadline",
                                                                 "deaf_to_cancel",
                                                                 "residue_on_give_up",
                                                                 "immortal_lease",
                                                                 "blind_resource",
                                                                 "stale_count",
                                                                 "permit_of_another",
                                                                 "writer_out_of_line",
                                                                 "two_step_election"};

[[nodiscard]] constexpr std::string_view name_of(Mutation mutation) noexcept {
  return mutation_names[static_cast<std::size_t>(mutation)];
}

}  // namespace dlock::simulation

// The faults of a backend, or of the program that uses it, that the suite must find.
#pragma once

#include <optional>
#include <string_view>
#include <utility>

namespace dlock::mutants {

enum class Mutation {
  none,                     // correct
  blind_release,            // deletes the lock without comparing the owner
  renewal_revives,          // a renewal takes a lost lock back
  renewal_lies,             // a renewal of a lost lock reports success
  renewal_refused,          // a renewal of a held lock reports that it is lost
  token_repeats,            // a lease has the token of the last one
  token_of_wall_clock,      // tokens are the wall clock, which may be stepped back
  late_grant,               // valid_until of a new lease is counted from the answer
  late_renewal,             // valid_until of a renewal is counted from the answer
  late_loss,                // valid_until is later than the service keeps the lock
  no_drift_margin,          // a lease counts in full, as if all clocks had the same rate
  residue_on_give_up,       // a waiter that gave up stays in the queue
  lost_wake_up,             // a release wakes no waiter
  early_expiry,             // the service treats a lease as expired after half of it
  immortal_lease,           // the service keeps locks for an hour, whatever lease was requested
  two_holders,              // a busy lock is granted, too
  folded_case,              // names that differ in case alone share a lock
  decoded_name,             // percent escapes in names are decoded
  busy_is_error,            // a busy lock is reported as a failure of the service
  failure_is_busy,          // a failure of the service is reported as a busy lock
  last_comes_first,         // the last waiter is served first, though the capabilities say fair
  release_lies,             // a release of a lost lock reports that it was still held
  release_waits_for_lease,  // a release reports success, but the lock stays until its lease expires
  blocks,                   // a call into the backend never returns
  forgotten_clean_up,       // a failed release is left to the lease's expiry
  shared_expiry,            // a reader's renewal keeps all readers' leases
  one_reader_enters,        // of the readers that wait behind a writer, only one gets the lock
  reader_jumps_queue,       // a try to read succeeds while others read, although a writer waits
  writer_out_of_line,       // a waiting writer keeps no readers out
  stale_count,              // a request for a permit is decided by the number in use at the last request
  permit_of_another,        // a release gives back a permit, even a different client's
  two_step_election,        // a candidate checks whether there is a leader, and then makes itself the leader
  some_kept,                // if one of several locks was not granted, the others are kept
  // --- Of the program ---
  late_signal,     // it learns of a loss one second late
  late_deadline,   // its waits end three seconds after their deadline
  deaf_to_cancel,  // a cancelled wait continues
  blind_resource,  // the resource accepts every write
};

inline constexpr std::pair<Mutation, std::string_view> mutation_names[] = {
    {Mutation::none, "none"},
    {Mutation::blind_release, "blind_release"},
    {Mutation::renewal_revives, "renewal_revives"},
    {Mutation::renewal_lies, "renewal_lies"},
    {Mutation::renewal_refused, "renewal_refused"},
    {Mutation::token_repeats, "token_repeats"},
    {Mutation::token_of_wall_clock, "token_of_wall_clock"},
    {Mutation::late_grant, "late_grant"},
    {Mutation::late_renewal, "late_renewal"},
    {Mutation::late_loss, "late_loss"},
    {Mutation::no_drift_margin, "no_drift_margin"},
    {Mutation::residue_on_give_up, "residue_on_give_up"},
    {Mutation::lost_wake_up, "lost_wake_up"},
    {Mutation::early_expiry, "early_expiry"},
    {Mutation::immortal_lease, "immortal_lease"},
    {Mutation::two_holders, "two_holders"},
    {Mutation::folded_case, "folded_case"},
    {Mutation::decoded_name, "decoded_name"},
    {Mutation::busy_is_error, "busy_is_error"},
    {Mutation::failure_is_busy, "failure_is_busy"},
    {Mutation::last_comes_first, "last_comes_first"},
    {Mutation::release_lies, "release_lies"},
    {Mutation::release_waits_for_lease, "release_waits_for_lease"},
    {Mutation::blocks, "blocks"},
    {Mutation::forgotten_clean_up, "forgotten_clean_up"},
    {Mutation::shared_expiry, "shared_expiry"},
    {Mutation::one_reader_enters, "one_reader_enters"},
    {Mutation::reader_jumps_queue, "reader_jumps_queue"},
    {Mutation::writer_out_of_line, "writer_out_of_line"},
    {Mutation::stale_count, "stale_count"},
    {Mutation::permit_of_another, "permit_of_another"},
    {Mutation::two_step_election, "two_step_election"},
    {Mutation::some_kept, "some_kept"},
    {Mutation::late_signal, "late_signal"},
    {Mutation::late_deadline, "late_deadline"},
    {Mutation::deaf_to_cancel, "deaf_to_cancel"},
    {Mutation::blind_resource, "blind_resource"},
};

[[nodiscard]] inline std::string_view to_string(Mutation mutation) noexcept {
  for (const auto& [value, text] : mutation_names) {
    if (value == mutation) return text;
  }
  return "unknown";
}

[[nodiscard]] inline std::optional<Mutation> parse_mutation(std::string_view text) noexcept {
  for (const auto& [value, name] : mutation_names) {
    if (name == text) return value;
  }
  return std::nullopt;
}

}  // namespace dlock::mutants

// The faults of a backend, or of the program that uses it, that the suite must find.
#pragma once

#include <optional>
#include <string_view>
#include <utility>

namespace dlock::mutants {

// The last four are the program's.
#define DLOCK_MUTATIONS(X)                                                                               \
  X(none, "correct")                                                                                     \
  X(blind_release, "deletes the lock without comparing the owner")                                       \
  X(renewal_revives, "a renewal takes a lost lock back")                                                 \
  X(renewal_lies, "a renewal of a lost lock reports success")                                            \
  X(renewal_refused, "a renewal of a held lock reports that it is lost")                                 \
  X(token_repeats, "a lease has the token of the last one")                                              \
  X(token_of_wall_clock, "tokens are the wall clock, which may be stepped back")                         \
  X(late_grant, "valid_until of a new lease is counted from the answer")                                 \
  X(late_renewal, "valid_until of a renewal is counted from the answer")                                 \
  X(late_loss, "valid_until is later than the service keeps the lock")                                   \
  X(no_drift_margin, "a lease counts in full, as if all clocks had the same rate")                       \
  X(residue_on_give_up, "a waiter that gave up stays in the queue")                                      \
  X(lost_wake_up, "a release wakes no waiter")                                                           \
  X(early_expiry, "the service treats a lease as expired after half of it")                              \
  X(immortal_lease, "the service keeps locks for an hour, whatever lease was requested")                 \
  X(two_holders, "a busy lock is granted, too")                                                          \
  X(folded_case, "names that differ in case alone share a lock")                                         \
  X(decoded_name, "percent escapes in names are decoded")                                                \
  X(busy_is_error, "a busy lock is reported as a failure of the service")                                \
  X(failure_is_busy, "a failure of the service is reported as a busy lock")                              \
  X(last_comes_first, "the last waiter is served first, though the capabilities say fair")               \
  X(release_lies, "a release of a lost lock reports that it was still held")                             \
  X(release_waits_for_lease, "a release reports success, but the lock stays until its lease expires")    \
  X(blocks, "a call into the backend never returns")                                                     \
  X(forgotten_clean_up, "a failed release is left to the lease's expiry")                                \
  X(shared_expiry, "a reader's renewal keeps all readers' leases")                                       \
  X(one_reader_enters, "of the readers that wait behind a writer, only one gets the lock")               \
  X(reader_jumps_queue, "a try to read succeeds while others read, although a writer waits")             \
  X(writer_out_of_line, "a waiting writer keeps no readers out")                                         \
  X(stale_count, "a request for a permit is decided by the number in use at the last request")           \
  X(permit_of_another, "a release gives back a permit, even a different client's")                       \
  X(two_step_election, "a candidate checks whether there is a leader, and then makes itself the leader") \
  X(some_kept, "if one of several locks was not granted, the others are kept")                           \
  X(late_signal, "it learns of a loss one second late")                                                  \
  X(late_deadline, "its waits end three seconds after their deadline")                                   \
  X(deaf_to_cancel, "a cancelled wait continues")                                                        \
  X(blind_resource, "the resource accepts every write")

enum class Mutation {
#define DLOCK_MUTATION(name, what) name,
  DLOCK_MUTATIONS(DLOCK_MUTATION)
#undef DLOCK_MUTATION
};

inline constexpr std::pair<Mutation, std::string_view> mutation_names[] = {
#define DLOCK_MUTATION(name, what) {Mutation::name, #name},
    DLOCK_MUTATIONS(DLOCK_MUTATION)
#undef DLOCK_MUTATION
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

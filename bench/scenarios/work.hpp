// Work for the callers of a crowd.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <dlock/dlock.hpp>

#include "bench/measure/crowd.hpp"
#include "bench/targets/target.hpp"

namespace dlock::bench {

// All locks of scenarios have names of this form: "dlock-bench/WHAT/NUMBER".
[[nodiscard]] std::string lock_name(const std::string& what, std::size_t number = 0);

// Throws std::runtime_error if the lease was lost before.
void release(Lease& lease);

// The lease that the service grants to acquires with these options, in tenths of a second; 0 if it does not expire.
// Acquires and releases the lock of that name, and so connects the client.
[[nodiscard]] std::chrono::milliseconds granted_lease(const Client& client, const std::string& name,
                                                      const AcquireOptions& options);

using Clients = std::shared_ptr<const std::vector<Client>>;
// locks: the total for all clients.
[[nodiscard]] Clients connect_clients(const Target& target, std::size_t locks, std::size_t clients);

// The work of one caller with its client. The sample of a pair is the time of acquire and release. Pairs, and those of
// the floor, are made once in advance, which connects.
using WorkOnClient = std::function<Crowd::Work(const Client& client, std::size_t caller, const std::stop_token& stop)>;
// Distributes the clients among the callers, in turn.
[[nodiscard]] Crowd::MakeWork spread(Clients clients, WorkOnClient work);

// Pairs of the caller's own lock, which is free.
[[nodiscard]] Crowd::Work own_lock(const Client& client, std::size_t caller, const std::stop_token& stop);
[[nodiscard]] Crowd::Work floor_pairs(std::shared_ptr<Floor> floor);
// Pairs of one read-write lock; percent: of reads.
[[nodiscard]] WorkOnClient readers_and_writers(int percent);
// Pairs of one semaphore.
[[nodiscard]] WorkOnClient permits(std::uint32_t count);

// A writer, which is the first caller, and readers, which acquire and release without a pause. A sample is the writer's
// wait.
[[nodiscard]] WorkOnClient writer_among(std::size_t readers);
// Locks of so many names by a Zipf distribution, held for a millisecond on average. A sample is a wait.
[[nodiscard]] WorkOnClient many_names(std::size_t names);

// Contenders for one lock, each of which holds it for a millisecond. A sample is the time from a release until the next
// contender holds it.
inline constexpr std::chrono::milliseconds contended_hold{1};
[[nodiscard]] std::shared_ptr<Crowd> contenders(Clients clients, std::size_t count);

}  // namespace dlock::bench

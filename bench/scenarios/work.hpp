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

// All locks of scenarios are below names of ours: "dlock-bench/WHAT/NUMBER".
[[nodiscard]] std::string lock_name(const std::string& what, std::size_t number = 0);

// Throws std::runtime_error if the lease was lost before.
void release(Lease& lease);

// How long a lease the service grants to acquires with these options, in tenths of a second; 0 if it does not expire.
// Takes and releases the lock of that name, and so connects the client.
[[nodiscard]] std::chrono::milliseconds granted_lease(const Client& client, const std::string& name,
                                                      const AcquireOptions& options);

using Clients = std::shared_ptr<const std::vector<Client>>;
// So many clients, for so many locks together.
[[nodiscard]] Clients connect_clients(const Target& target, std::size_t locks, std::size_t clients);

// Work of one caller with its client. The sample of a pair is the time of acquire and release. Pairs, and those of the
// floor, are made once at first, which connects.
using WorkOnClient = std::function<Crowd::Work(const Client& client, std::size_t caller, const std::stop_token& stop)>;
// Callers take turns in having one of the clients.
[[nodiscard]] Crowd::MakeWork spread(Clients clients, WorkOnClient work);

// Pairs of a lock of its own, which is free.
[[nodiscard]] Crowd::Work own_lock(const Client& client, std::size_t caller, const std::stop_token& stop);
[[nodiscard]] Crowd::Work floor_pairs(std::shared_ptr<Floor> floor);
// Pairs of one read-write lock, of which so many percent read.
[[nodiscard]] WorkOnClient readers_and_writers(int percent);
// Pairs of one semaphore.
[[nodiscard]] WorkOnClient permits(std::uint32_t count);

// A writer, which is the first caller, and so many readers, who acquire and release without a pause. A sample is the
// writer's wait.
[[nodiscard]] WorkOnClient writer_among(std::size_t readers);
// Locks of so many names by a Zipf distribution, held for a millisecond on average. A sample is a wait.
[[nodiscard]] WorkOnClient many_names(std::size_t names);

// Contenders for one lock that hold it for a millisecond each time. A sample is the time from one's release until the
// next one holds.
inline constexpr std::chrono::milliseconds contended_hold{1};
[[nodiscard]] std::shared_ptr<Crowd> contenders(Clients clients, std::size_t count);

}  // namespace dlock::bench

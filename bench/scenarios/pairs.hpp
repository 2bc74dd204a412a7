// Acquire and release of a free lock, as a crowd's work: the sample is the time of both.
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include <dlock/dlock.hpp>

#include "bench/measure/crowd.hpp"
#include "bench/targets/floor.hpp"

namespace dlock::bench {

// What scenarios lock: all of it below names of ours.
[[nodiscard]] std::string lock_name(const std::string& rest);

// Both make the first pair of calls at once, which connects.
[[nodiscard]] Crowd::Work dlock_pairs(const Client& client, const std::string& name, const std::stop_token& stop);
[[nodiscard]] Crowd::Work floor_pairs(std::shared_ptr<Floor> floor);

// Throws std::runtime_error if the lease was lost before.
void release(Lease& lease);

// How long a lease the service grants to acquires with these options, in tenths of a second; 0 if it does not expire.
// Takes and releases the lock of that name, and so connects the client.
[[nodiscard]] std::chrono::milliseconds granted_lease(const Client& client, const std::string& name,
                                                      const AcquireOptions& options);

}  // namespace dlock::bench

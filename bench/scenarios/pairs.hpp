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

// What the service granted, to the tenth of a second, as seen right after the acquire; 0 if the lease does not run out.
[[nodiscard]] std::chrono::milliseconds granted(const Lease& lease);

}  // namespace dlock::bench

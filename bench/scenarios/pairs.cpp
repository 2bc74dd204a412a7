#include "bench/scenarios/pairs.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <utility>

#include "bench/targets/target.hpp"

namespace dlock::bench {

std::string lock_name(const std::string& rest) {
  return lock_names + rest;
}

void release(Lease& lease) {
  if (!lease.release()) throw std::runtime_error("lock \"" + lease.name() + "\" was lost while it was held");
}

std::chrono::milliseconds granted_lease(const Client& client, const std::string& name, const AcquireOptions& options) {
  std::chrono::duration<double> safe{0};
  DistributedLock lock = client.make_lock(name);
  for (int i = 0; i < 3; ++i) {
    Lease lease = lock.acquire(options);
    const TimePoint now = boottime_clock()->now();
    const TimePoint until = lease.valid_until();
    release(lease);
    if (until == TimePoint::max()) return std::chrono::milliseconds(0);
    safe = std::max<std::chrono::duration<double>>(safe, until - now);
  }
  // A lease is safe for a hundredth less than it was granted for. The rest that is missing is what the request took.
  return std::chrono::milliseconds(std::llround(std::ceil(safe.count() / 0.99 * 10)) * 100);
}

Crowd::Work dlock_pairs(const Client& client, const std::string& name, const std::stop_token& stop) {
  const auto lock = std::make_shared<DistributedLock>(client.make_lock(name));
  Crowd::Work work = [lock](const std::stop_token& cancel) {
    const auto start = Clock::now();
    Lease lease = lock->acquire({.cancel = cancel});
    release(lease);
    return Clock::now() - start;
  };
  (void)work(stop);
  return work;
}

Crowd::Work floor_pairs(std::shared_ptr<Floor> floor) {
  Crowd::Work work = [floor = std::move(floor)](const std::stop_token&) {
    const auto start = Clock::now();
    floor->acquire();
    floor->release();
    return Clock::now() - start;
  };
  (void)work({});
  return work;
}

}  // namespace dlock::bench

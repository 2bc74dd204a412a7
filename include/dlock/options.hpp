// Options of a client and of one acquire. Aggregates, made for designated initialisers:
//
//   auto client = dlock::connect(url, {.label = "billing", .lease = 10s});
//   auto lease = client.make_lock("orders/42").acquire({.wait = 5s, .cancel = stop_token});
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>

#include <dlock/clock.hpp>
#include <dlock/duration.hpp>

namespace dlock {

class Observer;

// How to acquire.
struct AcquireOptions {
  // How long to wait while another owner holds the lock. Zero: try once. Negative: invalid_argument. Calls with "try_"
  // say themselves how long they wait; any other value here is invalid_argument.
  Duration wait = forever;
  // How long the service keeps the lock without a renewal. Unset: ClientOptions::lease. Outside
  // Capabilities::min_lease..max_lease: invalid_argument. If the backend's LeaseKind is not per_lock, this is the
  // minimum that the caller needs, and the session may keep the lock for longer.
  std::optional<Duration> lease = std::nullopt;
  // Renew automatically until released. False: a lease of fixed length, lost when it expires.
  bool renew = true;
  // Ends the wait with errc::cancelled. Has no effect once the lease is granted.
  std::stop_token cancel = {};
};

// How a client behaves; see connect().
struct ClientOptions {
  // Part of the holder that people see, "host:pid:label"; at most 64 bytes of printable UTF-8. Default: the name of the
  // program. The URL's `label` overrides it.
  std::string label = {};
  // The lease of acquires without one. A short lease frees the lock of a crashed holder sooner. A long lease survives
  // longer network failures. The URL's `lease` parameter overrides it.
  Duration lease = std::chrono::seconds(30);
  // If the service does not answer a request for this long, it counts as unavailable. Bounds a try when the service
  // hangs. The URL's `response_timeout` overrides it.
  Duration response_timeout = std::chrono::seconds(2);
  // The maximum time to establish a connection. The URL's `connect_timeout` overrides it.
  Duration connect_timeout = std::chrono::seconds(5);
  // The maximum time that ~Lease, unlock() and ~Client wait for the service's confirmation. Zero: they do not wait.
  // ~Lease and unlock() then send the release in the background. ~Client may drop what it has not sent by then: locks
  // that are still held then stay until their leases expire. The URL's `close_timeout` overrides it.
  Duration close_timeout = std::chrono::seconds(2);
  // Receives events; see observer.hpp.
  std::shared_ptr<Observer> observer = nullptr;
  // The time source. Default: boottime_clock().
  std::shared_ptr<Clock> clock = nullptr;
  // Source of owner ids and jitter: must return 64 random bits per call, and be callable from any thread. Default: the
  // kernel's random numbers. Use a seeded generator only in tests.
  std::function<std::uint64_t()> random = nullptr;
};

}  // namespace dlock

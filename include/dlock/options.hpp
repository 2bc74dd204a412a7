// Options of a client and of one acquire. Aggregates, made for designated initialisers:
//
//   auto client = dlock::connect(url, {.label = "billing", .lease = 10s});
//   auto lease = client.lock("orders/42").acquire({.wait = 5s, .cancel = stop_token});
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
  // How long to wait while somebody else holds the lock. Zero: try once. Negative: invalid_argument.
  Duration wait = forever;
  // How long the service keeps the lock for us without hearing from us. Unset: ClientOptions::lease. Outside
  // Capabilities::min_lease..max_lease: invalid_argument. Where the backend's LeaseKind is not per_lock, this is the
  // least that the caller needs, and the session may well keep the lock for longer.
  std::optional<Duration> lease = std::nullopt;
  // Renew automatically until released. False: a lease of fixed length, lost when it ends.
  bool renew = true;
  // Ends the wait with errc::cancelled. Has no effect once the lease is granted.
  std::stop_token cancel = {};
};

// How a client behaves; see connect().
struct ClientOptions {
  // Shown to people as part of the holder, "host:pid:label"; at most 64 bytes of printable UTF-8. Default: the name
  // of the program.
  std::string label = {};
  // The lease of acquires that do not name one. A short lease frees the lock of a crashed holder sooner; a long one
  // survives longer disturbances of the network. The URL's `lease` parameter overrides it.
  Duration lease = std::chrono::seconds(30);
  // The longest that one request may go unanswered before the service counts as unavailable. Bounds a try of a
  // service that hangs. The URL's `response_timeout` overrides it.
  Duration response_timeout = std::chrono::seconds(2);
  // The longest that setting up a connection may take. The URL's `connect_timeout` overrides it.
  Duration connect_timeout = std::chrono::seconds(5);
  // The longest that destroying a Lease, unlock() and destroying the Client wait for the service to confirm.
  Duration close_timeout = std::chrono::seconds(2);
  // Told what happens; see observer.hpp.
  std::shared_ptr<Observer> observer = nullptr;
  // Where time is read. Default: boottime_clock().
  std::shared_ptr<Clock> clock = nullptr;
  // Source of owner ids and jitter: must return 64 random bits a call, and be callable from any thread. Default: the
  // kernel's random numbers. Give a seeded generator only in tests.
  std::function<std::uint64_t()> random = nullptr;
};

}  // namespace dlock

// Watching a client: typed events and counters, for logs and metrics. dlock itself logs nothing.
//
//   struct Log : dlock::Observer {
//     void lost(const dlock::LostEvent& e) override { syslog(LOG_ERR, "lost %s", e.name.c_str()); }
//   };
//   auto client = dlock::connect(url, {.observer = std::make_shared<Log>()});
//
// Events are delivered one at a time on the client's engine thread, with no lock of dlock held. A handler must not
// block: while it runs, nothing of that client is renewed. Where handlers are slower than events come, at most 16384
// events wait; further ones are dropped and counted, and a warning tells how many. Completion handlers and lost() are
// never dropped; lost() fires before any event that waits, and completion handlers take turns with events. An exception
// from a handler is caught and counted.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include <dlock/error.hpp>
#include <dlock/token.hpp>

namespace dlock {

// A lock was acquired.
struct AcquiredEvent {
  std::string name;
  FencingToken token;
  std::chrono::nanoseconds wait;  // from the call to the grant
};

// A lease was released.
struct ReleasedEvent {
  std::string name;
  FencingToken token;
  std::chrono::nanoseconds hold;  // from the grant to the release
  bool confirmed;                 // the service confirmed that the lock had still been ours
};

// A lease was renewed.
struct RenewedEvent {
  std::string name;
  FencingToken token;
};

// A lease was lost.
struct LostEvent {
  std::string name;
  FencingToken token;
  Failure reason;
};

// The connection to the service: `reconnecting` when it broke and is being set up again, `connected` when it stands.
struct ConnectionEvent {
  enum class State { connected, reconnecting } state;
  Failure reason;  // why it broke; empty for `connected`
};

// Something that a person should know and that no call reports: a failed renewal that will be retried (once for each
// error code, and again only after the lease was renewed), a wait that cannot reach the service (once for each kind of
// trouble), an unsafe setting of the service, a callback that threw, events that were dropped.
struct WarningEvent {
  std::string name;  // empty where it concerns no single lock
  Failure reason;
};

// Is told what happens. Override what you want to hear of.
class Observer {
 public:
  Observer() = default;
  Observer(const Observer&) = delete;
  Observer& operator=(const Observer&) = delete;
  virtual ~Observer() = default;

  // One event each; on the engine thread.
  virtual void acquired(const AcquiredEvent&) {}
  virtual void released(const ReleasedEvent&) {}
  virtual void renewed(const RenewedEvent&) {}
  virtual void lost(const LostEvent&) {}
  virtual void connection(const ConnectionEvent&) {}
  virtual void warning(const WarningEvent&) {}
};

// Counters since the client was made, and gauges of now. A snapshot: the fields are read one after the other.
struct Stats {
  std::uint64_t acquired = 0;
  std::uint64_t busy = 0;  // tries that found somebody else holding
  std::uint64_t timed_out = 0;
  std::uint64_t cancelled = 0;
  std::uint64_t failed = 0;    // acquires that ended with any other error
  std::uint64_t released = 0;  // releases that the service confirmed
  std::uint64_t renewed = 0;
  std::uint64_t renew_failed = 0;  // attempts; each is retried until the lease's deadline
  std::uint64_t lost = 0;
  std::uint64_t reconnects = 0;
  std::uint64_t callback_exceptions = 0;
  std::uint64_t events_dropped = 0;  // of which the observer was not told, because it is too slow
  std::uint64_t held = 0;            // gauge
  std::uint64_t waiting = 0;         // gauge
};

}  // namespace dlock

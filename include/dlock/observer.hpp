// Watching a client: typed events and counters, for logs and metrics. dlock itself logs nothing; log_to() (log.hpp) is
// an observer that writes events to a stream.
//
//   struct Log : dlock::Observer {
//     void lost(const dlock::LostEvent& e) override { syslog(LOG_ERR, "lost %s", e.name.c_str()); }
//   };
//   auto client = dlock::connect(url, {.observer = std::make_shared<Log>()});
//
// dlock delivers events one at a time on the client's engine thread, and holds no mutex meanwhile. A handler must not
// block: while it runs, the client renews no lease. If handlers are slower than events, at most 16384 events wait.
// dlock drops and counts further ones, and a warning reports their number. It never drops completion handlers and
// lost(): lost() fires before any waiting event, and completion handlers alternate with events. dlock catches and
// counts exceptions from handlers.
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
  bool confirmed;                 // the service confirmed that the lock was still ours
};

// A lease was renewed. Only if Capabilities::lease_kind is per_lock: a session or process keeps all its locks at once,
// without a request for each lock. So no event reports that such a lease was extended.
struct RenewedEvent {
  std::string name;
  FencingToken token;
  // From sending the renewal to its answer, by the client's clock; of the attempt that succeeded. It includes the time
  // that the request waited in this process.
  std::chrono::nanoseconds latency;
};

// A lease was lost.
struct LostEvent {
  std::string name;
  FencingToken token;
  Failure reason;
};

// The connection to the service: `connected` when a request about locks was answered on it, for the first time or after
// a break; `reconnecting` after it broke, and again only if the reason has changed.
struct ConnectionEvent {
  enum class State { connected, reconnecting } state;
  Failure reason;  // why it broke; empty for `connected`
};

// A problem that operators should know and that no call reports: a failed renewal before its retry (once per error
// code, and again only after the lease was renewed), a wait that cannot reach the service (once per kind of problem),
// an unsafe setting of the service, a callback that threw, dropped events.
struct WarningEvent {
  std::string name;  // empty if it concerns no single lock
  Failure reason;
};

// Receives events. Override the functions for the events that you want.
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

// Counters since the creation of the client, and current gauges. Read one after the other, not as one atomic snapshot.
struct Stats {
  std::uint64_t acquired = 0;
  std::uint64_t busy = 0;  // tries that found the lock held
  std::uint64_t timed_out = 0;
  std::uint64_t cancelled = 0;
  std::uint64_t failed = 0;    // acquires that ended with any other error
  std::uint64_t released = 0;  // releases that the service confirmed
  std::uint64_t renewed = 0;
  std::uint64_t renew_failed = 0;  // attempts; each is retried until the lease's deadline
  std::uint64_t lost = 0;
  std::uint64_t reconnects = 0;
  std::uint64_t callback_exceptions = 0;
  std::uint64_t events_dropped = 0;  // dropped because the observer is too slow
  std::uint64_t held = 0;            // gauge
  std::uint64_t waiting = 0;         // gauge
};

}  // namespace dlock

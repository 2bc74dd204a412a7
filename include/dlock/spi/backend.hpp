// The service-provider interface: what a backend must implement. For backend authors; see docs/writing-a-backend.md for
// a complete one. Most services are easiest to write against TryBackend (try_backend.hpp).
//
//   std::unique_ptr<dlock::Backend> make_my_backend(dlock::BackendHost& host, const dlock::BackendConfig& config);
//   dlock::register_backend("mine", make_my_backend);
//
// All member functions of Backend and Contention run as tasks of the host's executor: one after the other, never at the
// same time. They must not block and must not throw. They report failures through the handler or sink. A backend calls
// a handler or sink exactly once, either inside the call that passed it, or later in a task.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <dlock/capabilities.hpp>
#include <dlock/clock.hpp>
#include <dlock/error.hpp>
#include <dlock/info.hpp>
#include <dlock/lock_kind.hpp>
#include <dlock/observer.hpp>
#include <dlock/spi/executor.hpp>
#include <dlock/spi/result.hpp>
#include <dlock/spi/url.hpp>
#include <dlock/token.hpp>

namespace dlock {

// One acquire, as the service is asked for it.
struct LockRequest {
  std::string name;
  OwnerId owner;                     // new for every acquire; a retry of the same acquire keeps it
  std::string holder;                // for people: "host:pid:label"
  std::chrono::nanoseconds lease{};  // within the backend's bounds
  bool wait = false;                 // false: answer busy instead of queueing
  LockKind kind = LockKind::lock;    // one that capabilities() has
  Mode mode = Mode::exclusive;       // `shared` with LockKind::read_write only
  // With LockKind::semaphore: the number of permits. If other owners hold it or wait for it with another number, the
  // backend refuses the request with errc::invalid_argument. The text names both numbers.
  std::uint32_t permits = 1;
  // With LockKind::election, which is otherwise an exclusive lock: the LockInfo::value while this owner holds it; at
  // most 1 KiB of UTF-8.
  std::string value = {};
};

// A granted request.
struct Grant {
  std::string name;
  OwnerId owner;
  FencingToken token;
  // Until when the lock is safe: lease_valid_until() of the time just before the request was sent; TimePoint::max() if
  // the lease does not expire. renew() and release() get the end of the last renewal.
  TimePoint valid_until;
  std::chrono::nanoseconds lease{};
  LockKind kind = LockKind::lock;  // this and the mode as in the request
  Mode mode = Mode::exclusive;
};

// When a lease must be treated as expired: sent + lease, less 1 % and 2 ms for clocks that run at different rates (the
// margin of the Redlock algorithm, S. Sanfilippo).
[[nodiscard]] constexpr TimePoint lease_valid_until(TimePoint sent, std::chrono::nanoseconds lease) noexcept {
  return saturating_add(sent, lease - lease / 100 - std::chrono::milliseconds(2));
}

// dlock signals a loss at most this long before the lease expires, so that the program knows in time. It is longer than
// a thread waits for a processor on a busy machine.
constexpr std::chrono::milliseconds longest_loss_lead{5};

// Whether the holder of a lease may have been told already that it expired. If the session is the lease and the service
// answers again later, a backend releases the locks of such a lease and does not extend it.
[[nodiscard]] constexpr bool may_be_over(TimePoint valid_until, TimePoint now) noexcept {
  return now >= saturating_add(valid_until, -longest_loss_lead);
}

// Receives the reports of a contention.
class GrantSink {
 public:
  GrantSink() = default;
  GrantSink(const GrantSink&) = delete;
  GrantSink& operator=(const GrantSink&) = delete;

  // Final: the lock is ours.
  virtual void granted(Grant grant) = 0;
  // Another owner holds the lock. Final if the request does not wait; otherwise a status, which may be repeated.
  virtual void busy() = 0;
  // The service is unreachable at the moment, and the contention keeps trying. A status, which may be repeated.
  virtual void unreachable(Failure why) = 0;
  // Final: a retry would not help, or the request does not wait.
  virtual void failed(Failure why) = 0;

 protected:
  ~GrantSink() = default;
};

// One acquire in progress. Destroying it cancels it without residue: the backend releases by owner id what it holds or
// may still get through requests in progress, now or as soon as the service is reachable. The core never destroys
// it inside a call to its sink. After the destruction the backend does not call the sink.
class Contention {
 public:
  Contention() = default;
  Contention(const Contention&) = delete;
  Contention& operator=(const Contention&) = delete;
  virtual ~Contention() = default;
};

// The outcome of a renewal.
struct RenewOutcome {
  enum class Status {
    renewed,  // valid_until holds
    lost,     // the service says that the lock is not, or no longer, this owner's
    failed,   // no answer or an error; will be retried while the lease lasts, but only a few times after
              // access_denied, invalid_argument, unsupported and protocol
  } status;
  TimePoint valid_until = {};
  Failure failure = {};
};

// The outcome of a release.
struct ReleaseOutcome {
  enum class Status {
    released,   // it was this owner's until now
    not_owner,  // it was not; nothing was touched
    failed,     // not confirmed. The backend retries until the lock is free or its lease has expired.
  } status;
  Failure failure = {};
};

// The names that a service should forget: one, or all, if no owner has acquired them for `idle`.
struct Forgetting {
  std::string name;                 // empty: all names
  std::chrono::nanoseconds idle{};  // least_idle or more
  LockKind kind = LockKind::lock;
};

// A token from a clock is greater than one that is this much older, even if the clock was set back a little in between.
// So a service need not remember the older one.
constexpr std::chrono::minutes least_idle{1};

// A subscription to changes of a name. Its destruction ends it.
class Watch {
 public:
  Watch() = default;
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;
  virtual ~Watch() = default;
};

class BackendHost;

// One client's access to a service. A BackendFactory makes it.
class Backend {
 public:
  using RenewHandler = std::function<void(RenewOutcome)>;
  using ReleaseHandler = std::function<void(ReleaseOutcome)>;
  template <class T>
  using Handler = std::function<void(Result<T>)>;

  Backend() = default;
  Backend(const Backend&) = delete;
  Backend& operator=(const Backend&) = delete;
  // Pending handlers need not run.
  virtual ~Backend() = default;

  // Constant for the lifetime of the backend; may be called from any thread.
  [[nodiscard]] virtual Capabilities capabilities() const noexcept = 0;

  // Starts an acquire. The contention lives until a final report or until the core cancels it.
  [[nodiscard]] virtual std::unique_ptr<Contention> contend(const LockRequest& request, GrantSink& sink) = 0;

  // Extends the lease by grant.lease from now, if grant.owner still owns the lock; must never acquire it again or
  // revive it. Called only if capabilities().lease_kind is per_lock, one at a time for each grant. Must answer within
  // BackendConfig::response_timeout or a quarter of the lease, whichever is shorter, so that there is time for a retry.
  // Default: errc::unsupported, for backends whose leases are those of a session.
  virtual void renew(const Grant& grant, RenewHandler done);

  // Frees the lock if grant.owner still owns it. Called at most once for each grant; a renewal may be in progress. Must
  // answer within BackendConfig::response_timeout.
  virtual void release(const Grant& grant, ReleaseHandler done) = 0;

  // Calls `changed` (as a task, any number of times) when the lock may have become free, until the Watch is destroyed,
  // and once when the watch takes effect, if that takes time. With LockKind::election also when a new leader is
  // elected, if the service reports that. nullptr, the default: the service cannot report changes.
  [[nodiscard]] virtual std::unique_ptr<Watch> watch(LockKind kind, const std::string& name,
                                                     std::function<void()> changed);

  // Proves that the service can be used, as far as one exchange can that changes nothing in it: connection, login, and
  // rights on locks of this name, which need not exist. Must answer within BackendConfig::response_timeout, with the
  // failure that a try would report. Default: inspect().
  virtual void ping(const std::string& name, Handler<bool> done);

  // Queries and administration. They must answer within BackendConfig::response_timeout. Default: errc::unsupported
  // (diagnose: no findings). The core calls them only for kinds that capabilities() has.
  virtual void inspect(LockKind kind, const std::string& name, Handler<LockInfo> done);
  virtual void list(LockKind kind, Handler<std::vector<LockInfo>> done);
  virtual void break_lock(LockKind kind, const std::string& name, Handler<bool> done);
  // Removes what the service remembers of names. In the same step it must check that no owner holds the lock, is about
  // to get it, or waits for it, and that its last token is old enough; it skips all other names. Later tokens of the
  // name must still be greater than the earlier ones. An acquire at the same time must end as if the name had never
  // been used, except that a try may find the lock busy. Answers with the removed names: none if none is left, else as
  // many as it could remove in the time. After a failure it may have removed some.
  virtual void forget(const Forgetting& what, Handler<std::vector<std::string>> done);
  virtual void diagnose(Handler<std::vector<Finding>> done);

  // Creates missing tables and other prerequisites in the service. Any number of clients may call it at once. Answers
  // with what it created, in words for people. Must answer within BackendConfig::response_timeout. Default: creates
  // nothing.
  virtual void initialize(Handler<std::vector<std::string>> done);

  // The client is closing: all contentions are gone and all grants are released. Finish the clean-up, then call done.
  // The client waits for a bounded time only. Default: calls done at once.
  virtual void close(std::function<void()> done);
};

// The failure of an acquire of a semaphore that others use with another number of permits. Any thread.
[[nodiscard]] Failure other_permits(const LockRequest& request, std::uint32_t theirs);

// For services that keep one text for each owner: the holder, which has no control characters, and with
// LockKind::election a line feed and the value. set_holder() reads it into what inspect() and list() answer, whose
// `kind` is set. Any thread.
[[nodiscard]] std::string holder_text(const LockRequest& request);
void set_holder(LockInfo& info, std::string_view text);

// The failure of a query without an answer. A query has no effect that could be in doubt, so ambiguous becomes
// unavailable. Any thread.
[[nodiscard]] Failure unanswered_question(Failure why);

// What the core offers to a backend. It outlives the backend. Call it in tasks only, except executor() and
// new_owner_id().
class BackendHost {
 public:
  BackendHost() = default;
  BackendHost(const BackendHost&) = delete;
  BackendHost& operator=(const BackendHost&) = delete;

  // Runs the tasks of this client.
  [[nodiscard]] virtual Executor& executor() noexcept = 0;

  // The session of this grant is alive until valid_until; only if lease_kind is session. Ignored for an unknown owner,
  // and for a lease that was lost before. Like lost(), it may release this grant or others before it returns, for
  // example if a lease of fixed length has expired.
  virtual void extended(const OwnerId& owner, TimePoint valid_until) = 0;
  // The grant is gone or no longer reliable. Ignored for an unknown owner.
  virtual void lost(const OwnerId& owner, Failure why) = 0;
  // For the observer.
  virtual void connection(ConnectionEvent event) = 0;
  virtual void warn(WarningEvent event) = 0;

  // A new owner id, for what a backend owns in addition to acquires of the core.
  [[nodiscard]] virtual OwnerId new_owner_id() = 0;

 protected:
  ~BackendHost() = default;
};

// The configuration of the client. The common options of URL and ClientOptions are merged and validated.
struct BackendConfig {
  Url url;             // without the common parameters, which the core took: lease, label, the timeouts
  std::string holder;  // "host:pid:label"
  std::chrono::nanoseconds lease{};
  std::chrono::nanoseconds response_timeout{};
  std::chrono::nanoseconds connect_timeout{};
};

}  // namespace dlock

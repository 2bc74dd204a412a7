// The service-provider interface: what a lock service must do to be used through dlock. For backend authors; see
// docs/writing-a-backend.md for a complete one. Most services are easiest to write against TryBackend
// (try_backend.hpp).
//
//   std::unique_ptr<dlock::Backend> make_my_backend(dlock::BackendHost& host, const dlock::BackendConfig& config);
//   dlock::register_backend("mine", make_my_backend);
//
// All member functions of Backend and Contention are called as tasks of the host's executor: serialised, never at the
// same time. They must not block and must not throw; what goes wrong is reported through the handler or sink. A handler
// or sink may be called from inside the call that was given it, or later as a task, exactly once.
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
#include <dlock/executor.hpp>
#include <dlock/info.hpp>
#include <dlock/observer.hpp>
#include <dlock/result.hpp>
#include <dlock/space.hpp>
#include <dlock/token.hpp>
#include <dlock/url.hpp>

namespace dlock {

// One acquire, as the service is asked for it.
struct LockRequest {
  std::string name;
  OwnerId owner;                     // new for every acquire; a retry of the same acquire keeps it
  std::string holder;                // for people: "host:pid:label"
  std::chrono::nanoseconds lease{};  // within the backend's bounds
  bool wait = false;                 // false: answer busy instead of queueing
  Space space = Space::lock;         // one that capabilities() has
  Mode mode = Mode::exclusive;       // `shared` with Space::read_write only
  // With Space::semaphore: how many hold it at most. Whoever asks while others hold it or wait for it with another
  // number is refused with errc::invalid_argument, in words that name both.
  std::uint32_t permits = 1;
  // With Space::election, which is otherwise a lock that one at a time holds: what LockInfo::value shows while this
  // owner does; at most 1 KiB of UTF-8.
  std::string value = {};
};

// The service's yes.
struct Grant {
  std::string name;
  OwnerId owner;
  FencingToken token;
  // Until when the lock is safe: lease_valid_until() of the time just before the request was sent; TimePoint::max() if
  // it does not run out.
  TimePoint valid_until;
  std::chrono::nanoseconds lease{};
  Space space = Space::lock;  // this and the mode as in the request
  Mode mode = Mode::exclusive;
};

// When a lease must be taken for over: sent + lease, less 1 % and 2 ms for clocks that run at different rates (the
// margin of the Redlock algorithm, S. Sanfilippo).
[[nodiscard]] constexpr TimePoint lease_valid_until(TimePoint sent, std::chrono::nanoseconds lease) noexcept {
  return saturating_add(sent, lease - lease / 100 - std::chrono::milliseconds(2));
}

// A loss is signalled this long before the lease is over, at most: the program has to have heard of it by then. It is
// more than a thread waits for a processor where others have more to do than there are processors.
constexpr std::chrono::milliseconds longest_loss_lead{5};

// Whether the holder of a lease may have been told already that it is over. Where the session is the lease, what such a
// lease holds is given back when the session is heard of again, not extended.
[[nodiscard]] constexpr bool may_be_over(TimePoint valid_until, TimePoint now) noexcept {
  return now >= saturating_add(valid_until, -longest_loss_lead);
}

// Where a contention reports.
class GrantSink {
 public:
  GrantSink() = default;
  GrantSink(const GrantSink&) = delete;
  GrantSink& operator=(const GrantSink&) = delete;

  // Final: the lock is ours.
  virtual void granted(Grant grant) = 0;
  // Somebody else holds the lock. Final if the request does not wait; otherwise news, and may be repeated.
  virtual void busy() = 0;
  // The service cannot be asked just now and the contention goes on trying. News, and may be repeated.
  virtual void unreachable(Failure why) = 0;
  // Final: trying again would not help, or the request does not wait.
  virtual void failed(Failure why) = 0;

 protected:
  ~GrantSink() = default;
};

// One acquire in progress. Destroying it gives up without residue: what it holds or may come to hold through requests
// under way is released by its owner id, now or as soon as the service can be reached. It is destroyed after a final
// report, too, but never from inside a call to the sink. The sink is not called after destruction.
class Contention {
 public:
  Contention() = default;
  Contention(const Contention&) = delete;
  Contention& operator=(const Contention&) = delete;
  virtual ~Contention() = default;
};

// What came of a renewal.
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

// What came of a release.
struct ReleaseOutcome {
  enum class Status {
    released,   // it was this owner's until now
    not_owner,  // it was not; nothing was touched
    failed,     // not confirmed. The backend goes on by itself until the lock is free or its lease is over.
  } status;
  Failure failure = {};
};

// What a service is to forget: one name or all of them, of those that nobody has taken for so long.
struct Forgetting {
  std::string name;                 // empty: all names
  std::chrono::nanoseconds idle{};  // least_idle or more
  Space space = Space::lock;
};

// A token that is minted from a clock is greater than one that was minted so long ago, even if that clock was set back
// a little in between, so a service need not remember the older one.
constexpr std::chrono::minutes least_idle{1};

// Interest in changes of a name; ends with its destruction.
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
  // Handlers still pending need not run.
  virtual ~Backend() = default;

  // Constant for the lifetime of the backend; may be called from any thread.
  [[nodiscard]] virtual Capabilities capabilities() const noexcept = 0;

  // Another backend for the same locks, with an executor of its own. Where capabilities().immediate, a client spreads
  // its names over several, so that its threads do not have to wait for each other; inspect(), list(), break_lock(),
  // forget(), diagnose() and initialize() are only asked of the first. Any thread, while this lives. nullptr, the
  // default: there is only this one. Throws Error when it cannot be made; then this one serves those names, too.
  [[nodiscard]] virtual std::unique_ptr<Backend> another(BackendHost& host) const;

  // Starts an acquire. The contention lives until a final report or until the core gives up.
  [[nodiscard]] virtual std::unique_ptr<Contention> contend(const LockRequest& request, GrantSink& sink) = 0;

  // Starts an acquire of several locks at once, of all or of none, that does not wait. Called where
  // capabilities().most_at_once says so, with requests of Space::lock, each with an owner of its own. granted() is
  // called for each of them, in their order, one right after the other; only the last is final. Where one of them is
  // busy, or it fails, nothing is left of any. errc::unsupported, the default: not now, or not these; they are asked
  // for one by one. May return nullptr once the sink has been called.
  [[nodiscard]] virtual std::unique_ptr<Contention> contend_for_all(const std::vector<LockRequest>& requests,
                                                                    GrantSink& sink);

  // Extends the lease by grant.lease from now, if grant.owner still owns the lock; must never take it back or bring it
  // back to life. Called only where capabilities().lease_kind is per_lock, one at a time for each grant. Must answer
  // within BackendConfig::response_timeout or a quarter of the lease, whichever is shorter, so that there is time for
  // another attempt.
  virtual void renew(const Grant& grant, RenewHandler done) = 0;

  // Frees the lock if grant.owner still owns it. Called at most once for each grant; a renewal may be under way. Must
  // answer within BackendConfig::response_timeout.
  virtual void release(const Grant& grant, ReleaseHandler done) = 0;

  // Calls `changed` (as a task, any number of times) when the lock may have become free, until the Watch is destroyed,
  // and once when the watch has come into effect, if that takes time. With Space::election also when somebody has got
  // it, where the service can tell that. nullptr, the default: the service cannot tell.
  [[nodiscard]] virtual std::unique_ptr<Watch> watch(Space space, const std::string& name,
                                                     std::function<void()> changed);

  // Questions and administration; must answer within BackendConfig::response_timeout. By default errc::unsupported
  // (diagnose: no findings). Asked about spaces that capabilities() has, only.
  virtual void inspect(Space space, const std::string& name, Handler<LockInfo> done);
  virtual void list(Space space, Handler<std::vector<LockInfo>> done);
  virtual void break_lock(Space space, const std::string& name, Handler<bool> done);
  // Removes what the service remembers of names, in one step with the check that nobody holds the lock, is about to be
  // granted it, or waits for it, and that its last token is as old as asked for; passes over all others. Later tokens
  // of the name must be greater than the earlier ones all the same, and an acquire that meets the removal must come to
  // its end as if the name had never been used, except that a try may find the lock busy. Answers with the names
  // removed: none where none is left, else as many as could be removed in the time. After a failure some may have been.
  virtual void forget(const Forgetting& what, Handler<std::vector<std::string>> done);
  virtual void diagnose(Handler<std::vector<Finding>> done);

  // Makes in the service what locks need there and is missing, such as tables; any number of clients may do it at once.
  // Answers with what was made, each in words for people. Must answer within BackendConfig::response_timeout. By
  // default nothing is needed and nothing made.
  virtual void initialize(Handler<std::vector<std::string>> done);

  // The client is closing: all contentions are gone and all grants were released. Finish what still cleans up, then
  // call done; the client waits for a bounded time only. By default done at once.
  virtual void close(std::function<void()> done);
};

// What an acquire of a semaphore ends with while others use it with another number of permits. Any thread.
[[nodiscard]] Failure other_permits(const LockRequest& request, std::uint32_t theirs);

// For services that keep one text for each owner: the holder, which has no control characters, and with Space::election
// a line feed and the value. set_holder() reads it into what inspect() and list() answer, whose `space` is set. Any
// thread.
[[nodiscard]] std::string holder_text(const LockRequest& request);
void set_holder(LockInfo& info, std::string_view text);

// What became of a question that was not answered: unlike an order, it has no effect that could be in doubt, so what is
// ambiguous elsewhere is unavailable here. Any thread.
[[nodiscard]] Failure unanswered_question(Failure why);

// What the core offers to a backend. Outlives it. Call from tasks only, except executor() and new_owner_id().
class BackendHost {
 public:
  BackendHost() = default;
  BackendHost(const BackendHost&) = delete;
  BackendHost& operator=(const BackendHost&) = delete;

  // Runs the tasks of this client.
  [[nodiscard]] virtual Executor& executor() noexcept = 0;

  // The session that keeps this grant was heard of: where lease_kind is session. Ignored for an unknown owner, and
  // for a lease that was lost before. May release this grant or others before it returns, as when a lease of fixed
  // length has run out; so may lost().
  virtual void extended(const OwnerId& owner, TimePoint valid_until) = 0;
  // The grant is gone, or can no longer be relied on. Ignored for an unknown owner.
  virtual void lost(const OwnerId& owner, Failure why) = 0;
  // For the observer.
  virtual void connection(ConnectionEvent event) = 0;
  virtual void warn(WarningEvent event) = 0;

  // A new owner id, for what a backend owns beside the acquires that it is asked for.
  [[nodiscard]] virtual OwnerId new_owner_id() = 0;

 protected:
  ~BackendHost() = default;
};

// How the client was configured; the common options of URL and ClientOptions are merged and validated.
struct BackendConfig {
  Url url;             // without the common parameters, which the core took: lease, label, the timeouts
  std::string holder;  // "host:pid:label"
  std::chrono::nanoseconds lease{};
  std::chrono::nanoseconds response_timeout{};
  std::chrono::nanoseconds connect_timeout{};
};

}  // namespace dlock

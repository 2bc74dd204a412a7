// Client: a connection to one lock service, shared by all locks made from it.
//
//   dlock::Client client = dlock::connect("file:///run/lock/myapp");
//   dlock::DistributedLock lock = client.make_lock("nightly-report");
//
// A process normally has one client per service. Each has one engine thread, which renews leases, watches for loss and
// runs handlers. All functions may be called from any thread, except move and destruction. On a moved-from client only
// destruction and assignment are defined.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <dlock/capabilities.hpp>
#include <dlock/duration.hpp>
#include <dlock/election.hpp>
#include <dlock/info.hpp>
#include <dlock/lock.hpp>
#include <dlock/lock_kind.hpp>
#include <dlock/multi_lock.hpp>
#include <dlock/observer.hpp>
#include <dlock/options.hpp>
#include <dlock/read_write_lock.hpp>
#include <dlock/semaphore.hpp>

namespace dlock {

class Backend;
class BackendHost;
struct BackendConfig;

// Makes the backend of one client. Runs once, inside connect(); must not wait for a remote service. Throws Error for an
// invalid URL. See spi/backend.hpp.
using BackendFactory = std::function<std::unique_ptr<Backend>(BackendHost&, const BackendConfig&)>;

class Client {
 public:
  Client(Client&&) noexcept;
  Client& operator=(Client&&) noexcept;
  // Fails outstanding acquires with errc::closed. Marks all leases as lost and releases them. Waits for the service at
  // most ClientOptions::close_timeout, then drops what it could not send, and ends the engine thread. No handler runs
  // afterwards. Never throws. On the engine thread it does not wait.
  ~Client();

  // A lock of that name. Sends nothing. Throws Error(invalid_argument) unless the name is UTF-8 of 1..512 bytes without
  // control characters. dlock compares names byte by byte and never interprets them. A lock works only during the
  // lifetime of its client, so connect(url).make_lock(name) does not compile: keep the client.
  [[nodiscard]] DistributedLock make_lock(std::string name) const&;
  // NOLINTNEXTLINE(modernize-use-nodiscard): nobody can call it
  DistributedLock make_lock(std::string name) const&& = delete;
  // Several locks as one; see multi_lock.hpp. Sends nothing. Throws Error(invalid_argument) for an invalid name, the
  // same name twice, or no name.
  [[nodiscard]] MultiLock make_multi_lock(std::vector<std::string> names) const&;
  // NOLINTNEXTLINE(modernize-use-nodiscard): nobody can call it
  MultiLock make_multi_lock(std::vector<std::string> names) const&& = delete;

  // As make_lock(), for the other kinds of locks; see read_write_lock.hpp, semaphore.hpp and election.hpp. Each kind
  // has its own names. Also throws Error(unsupported) if the backend has no such locks (see Capabilities).
  [[nodiscard]] ReadWriteLock make_read_write_lock(std::string name) const&;
  // NOLINTNEXTLINE(modernize-use-nodiscard): nobody can call it
  ReadWriteLock make_read_write_lock(std::string name) const&& = delete;
  [[nodiscard]] Election make_election(std::string name) const&;
  // NOLINTNEXTLINE(modernize-use-nodiscard): nobody can call it
  Election make_election(std::string name) const&& = delete;
  // Also throws Error(invalid_argument) unless permits is 1..2^31-1.
  [[nodiscard]] Semaphore make_semaphore(std::string name, std::int64_t permits) const&;
  // NOLINTNEXTLINE(modernize-use-nodiscard): nobody can call it
  Semaphore make_semaphore(std::string name, std::int64_t permits) const&& = delete;

  [[nodiscard]] Capabilities capabilities() const noexcept;
  [[nodiscard]] Stats stats() const noexcept;
  // The client's URL without its password, safe to show.
  [[nodiscard]] const std::string& url() const noexcept;
  // How this client appears to people: "host:pid:label".
  [[nodiscard]] const std::string& holder() const noexcept;

  // Proves by one exchange about locks that the service can be used: that it answers, that the credentials are good,
  // and that this client may read locks of that name. Connects first if need be, retries while the service is
  // unavailable, and blocks for at most `wait`. Changes nothing in the service, whether the name is in use or not. If
  // rights are limited to some names, pass one of those. For the start of a program, or a health check:
  //
  //   client.ping(5s);   // or throws dlock::Error, which says why
  //
  // Throws Error as a try would: unavailable at the end of `wait`; at once access_denied, protocol and other errors
  // that a retry does not help; invalid_argument for a name that make_lock() refuses or a negative wait; unsupported if
  // the backend has nothing to ask for. On the engine thread (in a handler) it throws
  // std::errc::resource_deadlock_would_occur. Does not prove the rights to write (to acquire a lock, to create tables
  // or nodes, to publish and subscribe), nor anything about the servers of a cluster that do not keep this name: see
  // diagnose().
  void ping(Duration wait, std::string_view name = "dlock-ping") const;

  // --- Administration ------------------------------------------------------------------------------------------------
  // For tools and operators; programs that lock need none of it. These functions query the service, block for at most a
  // quarter longer than ClientOptions::response_timeout (forget() for twice that), and throw Error (unsupported if
  // Capabilities says so). On the engine thread (in a handler) they throw std::errc::resource_deadlock_would_occur.
  // They concern locks of one kind, by default plain locks.

  [[nodiscard]] LockInfo inspect(std::string_view name, LockKind kind = LockKind::lock) const;
  // All names that the service knows, sorted: held locks, and names with a remembered token.
  [[nodiscard]] std::vector<LockInfo> list(LockKind kind = LockKind::lock) const;
  // Takes the lock away from all holders. They learn of it through their loss signals. True: the lock was held. For
  // operators: two programs may work at the same time until the old holder notices.
  // NOLINTNEXTLINE(modernize-use-nodiscard): done for its effect
  bool break_lock(std::string_view name, LockKind kind = LockKind::lock) const;
  // Removes what the service remembers of a name that is no longer used. Later leases of that name still get greater
  // tokens. True: something was removed. False: the service remembers nothing of it. Safe while locks are in use: if
  // the lock is held or has waiters, or if its last token is less than a minute old by the service's clock, it removes
  // nothing and throws Error(timed_out) with the reason.
  // NOLINTNEXTLINE(modernize-use-nodiscard): done for its effect
  bool forget(std::string_view name, LockKind kind = LockKind::lock) const;
  // As forget(), for all names that were last acquired at least `idle` ago. Names in use stay. Returns the removed
  // names, sorted. A call removes as many as it can in its time: repeat it until it returns none. If it throws, it may
  // have removed some. Throws Error(invalid_argument) if `idle` is less than a minute.
  // NOLINTNEXTLINE(modernize-use-nodiscard): done for its effect
  std::vector<std::string> forget_idle(Duration idle, LockKind kind = LockKind::lock) const;
  // Connects to the service and checks for settings that endanger locks. Reports an unreachable service as a finding.
  [[nodiscard]] std::vector<Finding> diagnose() const;
  // Creates missing tables and other prerequisites in the service. Safe while locks are in use, and when several
  // clients call it at once. Returns what it created, in words for people. Empty: nothing was missing, or this kind of
  // service needs nothing. A program with the right to create them need not call it: the first use creates them. Throws
  // Error(access_denied) without that right.
  // NOLINTNEXTLINE(modernize-use-nodiscard): done for its effect
  std::vector<std::string> initialize() const;

 private:
  void require(LockKind kind) const;
  friend Client connect(std::string_view url, ClientOptions options, const BackendFactory& factory);
  explicit Client(std::shared_ptr<detail::ClientCore> core) noexcept;

  std::shared_ptr<detail::ClientCore> core_;
};

// Makes a client; the URL's scheme selects the backend. Does not connect to a remote service: the first call that needs
// it does, and reports an unreachable service or wrong credentials; Client::ping() does only that. Any thread. Throws
// Error: invalid_argument, which names the wrong part of the URL or the wrong option; unsupported if it needs TLS and
// this build has none; unavailable if no thread or descriptor is left; for file://, why it cannot use the directory.
[[nodiscard]] Client connect(std::string_view url, ClientOptions options = {});
// As above, with a backend of your own that need not be registered.
[[nodiscard]] Client connect(std::string_view url, ClientOptions options, const BackendFactory& factory);

// Adds a scheme for connect(), for the whole process. Any thread. Throws Error(invalid_argument) if the scheme is
// invalid (RFC 3986) or already exists.
void register_backend(std::string scheme, BackendFactory factory);

// The schemes that connect() knows, sorted.
[[nodiscard]] std::vector<std::string> backends();

}  // namespace dlock

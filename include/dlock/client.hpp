// Client: a connection to one lock service, shared by all locks made from it.
//
//   dlock::Client client = dlock::connect("file:///run/lock/myapp");
//   dlock::DistributedLock lock = client.lock("nightly-report");
//
// A process normally has one client a service. Each has one engine thread, which renews leases, watches for loss and
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
#include <dlock/multi_lock.hpp>
#include <dlock/observer.hpp>
#include <dlock/options.hpp>
#include <dlock/read_write_lock.hpp>
#include <dlock/semaphore.hpp>
#include <dlock/space.hpp>

namespace dlock {

class Backend;
class BackendHost;
struct BackendConfig;

// Makes the backend of one client. Runs once, inside connect(); must not wait for a remote service. Throws Error for a
// URL that it does not understand. See backend.hpp.
using BackendFactory = std::function<std::unique_ptr<Backend>(BackendHost&, const BackendConfig&)>;

class Client {
 public:
  Client(Client&&) noexcept;
  Client& operator=(Client&&) noexcept;
  // Fails outstanding acquires with errc::closed, gives up all leases (they are lost from then on) and releases them,
  // waiting for the service at most ClientOptions::close_timeout, then ends the engine thread. No handler runs
  // afterwards. Never throws. On the engine thread it does not wait.
  ~Client();

  // A lock of that name. Sends nothing. Throws Error(invalid_argument) unless the name is UTF-8 of 1..512 bytes
  // without control characters; apart from that it is taken byte by byte and never interpreted. A lock works only as
  // long as its client lives, so connect(url).lock(name) does not compile: keep the client.
  [[nodiscard]] DistributedLock lock(std::string name) const&;
  // NOLINTNEXTLINE(modernize-use-nodiscard): nobody can call it
  DistributedLock lock(std::string name) const&& = delete;
  // Several locks as one; see multi_lock.hpp. Sends nothing. Throws Error(invalid_argument) for a name that is no good,
  // the same name twice, or none at all.
  [[nodiscard]] MultiLock multi_lock(std::vector<std::string> names) const&;
  // NOLINTNEXTLINE(modernize-use-nodiscard): nobody can call it
  MultiLock multi_lock(std::vector<std::string> names) const&& = delete;

  // The same for the other kinds of locks; see read_write_lock.hpp, semaphore.hpp and election.hpp. Each kind has names
  // of its own. Throws Error(unsupported), too, where the backend has no such locks (see Capabilities).
  [[nodiscard]] ReadWriteLock read_write_lock(std::string name) const&;
  // NOLINTNEXTLINE(modernize-use-nodiscard): nobody can call it
  ReadWriteLock read_write_lock(std::string name) const&& = delete;
  // Throws Error(invalid_argument), too, unless there are 1..2^31-1 permits.
  [[nodiscard]] Semaphore semaphore(std::string name, std::int64_t permits) const&;
  // NOLINTNEXTLINE(modernize-use-nodiscard): nobody can call it
  Semaphore semaphore(std::string name, std::int64_t permits) const&& = delete;
  [[nodiscard]] Election election(std::string name) const&;
  // NOLINTNEXTLINE(modernize-use-nodiscard): nobody can call it
  Election election(std::string name) const&& = delete;

  [[nodiscard]] Capabilities capabilities() const noexcept;
  [[nodiscard]] Stats stats() const noexcept;
  // The client's URL as it may be shown: without password.
  [[nodiscard]] const std::string& url() const noexcept;
  // How this client appears to people: "host:pid:label".
  [[nodiscard]] const std::string& holder() const noexcept;

  // The following ask the service, block for at most ClientOptions::response_timeout, and throw Error (unsupported
  // where Capabilities says so). They are about locks of one kind, by default the plain ones.

  [[nodiscard]] LockInfo inspect(std::string_view name, Space space = Space::lock) const;
  // All names that the service knows, sorted: those held, and those it remembers a token of.
  [[nodiscard]] std::vector<LockInfo> list(Space space = Space::lock) const;
  // Takes the lock away from all who hold it; they find out through their loss signals. True: somebody held it.
  // For operators: two programs may be at work until the old holder has noticed.
  // NOLINTNEXTLINE(modernize-use-nodiscard): done for its effect
  bool break_lock(std::string_view name, Space space = Space::lock) const;
  // Removes what the service remembers of a name that is no longer used. Later leases of that name get greater tokens
  // all the same. True: something was removed. False: the service remembers nothing of it. Safe while locks are in use:
  // throws Error(timed_out), which says why, and removes nothing while the lock is held or waited for, or if its last
  // token is less than a minute old by the service's clock.
  // NOLINTNEXTLINE(modernize-use-nodiscard): done for its effect
  bool forget(std::string_view name, Space space = Space::lock) const;
  // The same for all names that were last taken `idle` ago or earlier, a minute at least; a name that is in use stays.
  // Answers with those removed, sorted. A call removes as many as it can in its time: repeat it until none is answered.
  // If it throws, some may have been removed. Throws Error(invalid_argument) for less than a minute.
  // NOLINTNEXTLINE(modernize-use-nodiscard): done for its effect
  std::vector<std::string> forget_idle(Duration idle, Space space = Space::lock) const;
  // Reaches the service and looks for settings that endanger locks. Reports an unreachable service as a finding.
  [[nodiscard]] std::vector<Finding> diagnose() const;
  // Makes in the service what locks need there and is missing, such as the tables of a database; safe while locks are
  // in use, and where several do it at once. Answers with what was made, each in words for people. Empty: nothing was
  // missing, or this kind of service needs nothing. Not needed where the program's own role may make it: then the first
  // use does. Throws Error(access_denied) if it may not.
  // NOLINTNEXTLINE(modernize-use-nodiscard): done for its effect
  std::vector<std::string> initialize() const;

 private:
  void require(Space space) const;
  friend Client connect(std::string_view url, ClientOptions options, const BackendFactory& factory);
  explicit Client(std::shared_ptr<detail::ClientCore> core) noexcept;

  std::shared_ptr<detail::ClientCore> core_;
};

// Makes a client; the URL's scheme picks the backend. Does not wait for a remote service: an unreachable one is
// reported by the first call that needs it. Throws Error(invalid_argument) naming the part of the URL or option that
// is wrong.
[[nodiscard]] Client connect(std::string_view url, ClientOptions options = {});
// The same with a backend of your own, without registering it.
[[nodiscard]] Client connect(std::string_view url, ClientOptions options, const BackendFactory& factory);

// Adds a scheme for connect(), for the whole process. Any thread. Throws Error(invalid_argument) if the scheme is not
// a valid one (RFC 3986) or is taken.
void register_backend(std::string scheme, BackendFactory factory);

// The schemes that connect() knows, sorted.
[[nodiscard]] std::vector<std::string> backends();

}  // namespace dlock

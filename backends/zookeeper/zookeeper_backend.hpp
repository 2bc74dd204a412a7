// The sessions of a client: one, and a few more while it is busy, because a server reads the requests of a connection
// one after the other.
//
//   member  | session
//   --------+------------------------------------------------------------------------------------------------
//   first   | as long as the client lives; its connection is reported to the observer, and questions use it
//   further | opened, or woken, when acquires go on finding many writes under way in all that are ready; rests when it
//           | was not used for a while, so that it costs the servers neither a connection nor heartbeats
//
// An acquire stays with one member: waiting, the lock, its release, and any cleanup. Members know nothing of each
// other. Acquires of a name go to the member that has others of it, if it is ready, so that they queue in the order of
// their calls; those of different sessions exclude each other through the ensemble, as two clients do. A lost session
// loses its own locks only.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <dlock/spi/backend.hpp>
#include <dlock/spi/lifetime.hpp>

#include "backends/zookeeper/administration/chroot.hpp"
#include "backends/zookeeper/session_locks.hpp"

namespace dlock::zookeeper {

class ZookeeperBackend final : public Backend {
 public:
  // As for SessionLocks.
  ZookeeperBackend(BackendHost& host, Options options, std::chrono::nanoseconds default_lease, HandleFactory handles,
                   ServerAsker asker);
  ~ZookeeperBackend() override;

  [[nodiscard]] Capabilities capabilities() const noexcept override { return first_.capabilities(); }
  [[nodiscard]] std::unique_ptr<Contention> contend(const LockRequest& request, GrantSink& sink) override;
  void release(const Grant& grant, ReleaseHandler done) override;
  // Uses the first session, as all queries do.
  [[nodiscard]] std::unique_ptr<Watch> watch(LockKind kind, const std::string& name,
                                             std::function<void()> changed) override {
    return first_.watch(kind, name, std::move(changed));
  }
  void ping(const std::string& name, Handler<bool> done) override { first_.ping(name, std::move(done)); }
  void inspect(LockKind kind, const std::string& name, Handler<LockInfo> done) override {
    first_.inspect(kind, name, std::move(done));
  }
  void list(LockKind kind, Handler<std::vector<LockInfo>> done) override { first_.list(kind, std::move(done)); }
  void break_lock(LockKind kind, const std::string& name, Handler<bool> done) override {
    first_.break_lock(kind, name, std::move(done));
  }
  void forget(const Forgetting& what, Handler<std::vector<std::string>> done) override {
    first_.forget(what, std::move(done));
  }
  void diagnose(Handler<std::vector<Finding>> done) override { first_.diagnose(std::move(done)); }
  void initialize(Handler<std::vector<std::string>> done) override { chroot_.make(std::move(done)); }
  void close(std::function<void()> done) override;

  // A member with so many writes in flight gets another acquire only if there is no better one.
  static constexpr std::size_t busy_from = 16;
  // Another one is opened if most acquires found all members busy for so long: it does not help in a short burst.
  static constexpr std::chrono::milliseconds busy_for{100};
  // A further member rests after so long without use, or after the connect timeout if it cannot connect; then none is
  // opened for so long.
  static constexpr std::chrono::seconds rest_after{30};

 private:
  struct Member;

  [[nodiscard]] Member& add_member();
  [[nodiscard]] Member& choose(const std::string& name);
  void all_busy();
  void open_another(TimePoint now);
  void sweep();
  void connection_changed();
  void make_room();
  void rest(Member& member);
  void warn(WarningEvent event);

  BackendHost& host_;
  const Options options_;
  const std::chrono::nanoseconds default_lease_;
  const HandleFactory handles_;
  const ServerAsker asker_;
  std::set<std::pair<std::string, std::error_code>> warned_of_;
  std::vector<std::unique_ptr<Member>> members_;
  SessionLocks& first_;
  // Since when acquires are counted: those that found all members busy, and the others.
  TimePoint counted_since_ = TimePoint::min();
  std::size_t busy_ = 0;
  std::size_t calm_ = 0;
  TimePoint not_before_ = TimePoint::min();  // for opening a member
  Chroot chroot_;
  bool closing_ = false;
  Timer timer_;
  Lifetime lifetime_;
};

// zookeeper://h1:2181,h2:2181/chroot[?strategy=sequential|sequential-herd|ephemeral][&prefix=/path]
//     [&session_timeout=30s][&sessions=4][&auth=digest:user:password][&layout=curator|kazoo]
[[nodiscard]] std::unique_ptr<Backend> make_zookeeper_backend(BackendHost& host, const BackendConfig& config);

}  // namespace dlock::zookeeper

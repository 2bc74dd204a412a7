// zookeeper://: locks in a ZooKeeper ensemble. See docs/backends/zookeeper.md for the layout of the nodes and for what
// is guaranteed.
//
// For its strategies see contentions.hpp. All locks of a SessionLocks live in one session (session.hpp); a client that
// is busy has more than one of them (zookeeper_backend.hpp).
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <dlock/spi/backend.hpp>
#include <dlock/spi/lifetime.hpp>

#include "backends/common/connection_news.hpp"
#include "backends/zookeeper/administration/diagnosis.hpp"
#include "backends/zookeeper/administration/inspection.hpp"
#include "backends/zookeeper/administration/queries.hpp"
#include "backends/zookeeper/connection/session.hpp"
#include "backends/zookeeper/connection/watches.hpp"
#include "backends/zookeeper/nodes/holds.hpp"
#include "backends/zookeeper/nodes/lock_watches.hpp"
#include "backends/zookeeper/nodes/parents.hpp"
#include "backends/zookeeper/nodes/removals.hpp"
#include "backends/zookeeper/nodes/requests.hpp"
#include "backends/zookeeper/options.hpp"
#include "backends/zookeeper/strategies/contentions.hpp"

namespace dlock::zookeeper {

class SessionLocks final : public Backend, private Session::User {
 public:
  // default_lease: of acquires that do not name one. handles, asker: make sessions and query servers; tests have their
  // own.
  SessionLocks(BackendHost& host, Options options, std::chrono::nanoseconds default_lease, HandleFactory handles,
               ServerAsker asker);
  ~SessionLocks() override;

  [[nodiscard]] Capabilities capabilities() const noexcept override;

  [[nodiscard]] std::unique_ptr<Contention> contend(const LockRequest& request, GrantSink& sink) override;
  [[nodiscard]] std::unique_ptr<Watch> watch(LockKind kind, const std::string& name,
                                             std::function<void()> changed) override;
  void release(const Grant& grant, ReleaseHandler done) override;

  void ping(const std::string& name, Handler<bool> done) override {
    zookeeper::ping(queries_, {options_, requests_, LockKind::lock, name}, std::move(done));
  }
  void inspect(LockKind kind, const std::string& name, Handler<LockInfo> done) override {
    zookeeper::inspect(queries_, {options_, requests_, kind, name}, std::move(done));
  }
  void list(LockKind kind, Handler<std::vector<LockInfo>> done) override {
    zookeeper::list(queries_, {options_, requests_, kind}, std::move(done));
  }
  void break_lock(LockKind kind, const std::string& name, Handler<bool> done) override {
    zookeeper::break_lock(queries_, {options_, requests_, kind, name}, std::move(done));
  }
  void forget(const Forgetting& what, Handler<std::vector<std::string>> done) override {
    zookeeper::forget(queries_, {options_, requests_, what.kind, what.name}, std::move(done));
  }
  void diagnose(Handler<std::vector<Finding>> done) override {
    zookeeper::diagnose(queries_, ask_, {host_.executor(), options_, requests_, parents_, removals_}, std::move(done));
  }
  void close(std::function<void()> done) override;

  // --- Its session, for a client that has several ---
  // Connects, before the first acquire does.
  void want() { session_.want(); }
  // Only while unused(): closes the session until it is needed again. Nothing is reported.
  void rest();
  [[nodiscard]] bool ready() const noexcept { return session_.ready(); }
  [[nodiscard]] bool resting() const noexcept { return session_.idle(); }
  [[nodiscard]] std::size_t writes_under_way() const noexcept { return requests_.writes_under_way(); }
  // An acquire waits for the name in a queue, or is in flight.
  [[nodiscard]] bool contends(const std::string& name) const { return contentions_.contends(name); }
  [[nodiscard]] bool holds(const OwnerId& owner) const { return holds_.contains(owner); }
  // The session has no holder and no waiter, and no node to remove.
  [[nodiscard]] bool unused() const noexcept;

 private:
  void session_ready(bool fresh) override;
  void session_good() override;
  void session_alive(TimePoint valid_until) override;
  void session_suspended(const Failure& why) override;
  void session_lost(const Failure& why) override;

  void broken(const Failure& why);
  void warn_of_short_session();

  BackendHost& host_;
  const Options options_;
  const std::chrono::nanoseconds default_lease_;
  // Destroyed last: the others end their watches with it. Its destruction calls no handlers.
  Session session_;
  Requests requests_;
  Watches watches_;
  Parents parents_;
  Removals removals_;
  Holds holds_;
  LockWatches lock_watches_;
  Contentions contentions_;
  Queries queries_;
  const ServerAsker ask_;
  common::ConnectionNews news_;
  common::ConnectionNews::Source connection_{news_};
  bool was_good_ = false;  // a connection, since the session was wanted
  bool warned_of_short_session_ = false;
  Lifetime lifetime_;
};

}  // namespace dlock::zookeeper

// redis:// and rediss://: locks in one Redis server; redis-sentinel:// and rediss-sentinel://: in whichever server is
// the master of a service; redis-cluster:// and rediss-cluster://: in the nodes of a cluster. See
// docs/backends/redis.md for the layout of the keys and for what is guaranteed.
//
// By default waiters are in a queue in the server (queue_contention.hpp); ?strategy=broadcast and ?strategy=poll use
// the contention of TryBackend.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <dlock/spi/backend.hpp>
#include <dlock/spi/lifetime.hpp>
#include <dlock/spi/try_backend.hpp>

#include "backends/common/connection_news.hpp"
#include "backends/redis/cluster/cluster.hpp"
#include "backends/redis/cluster/sharded_subscriber.hpp"
#include "backends/redis/connection/server.hpp"
#include "backends/redis/connection/servers.hpp"
#include "backends/redis/connection/subscriber.hpp"
#include "backends/redis/connection/wire.hpp"
#include "backends/redis/options.hpp"
#include "backends/redis/requests/acquirer.hpp"
#include "backends/redis/requests/release_request.hpp"
#include "backends/redis/requests/renewals.hpp"
#include "backends/redis/waiting/wake_ups.hpp"

namespace dlock::redis {

class RedisBackend final : public TryBackend, private Cluster::User {
 public:
  // wires: how connections are made; tests have their own. sentinels: those that the options name.
  RedisBackend(BackendHost& host, Options options, WireFactory wires, std::shared_ptr<Sentinels> sentinels = nullptr);
  ~RedisBackend() override;

  [[nodiscard]] Capabilities capabilities() const noexcept override;

  [[nodiscard]] std::unique_ptr<Contention> contend(const LockRequest& request, GrantSink& sink) override;
  void try_acquire(const LockRequest& request, TryHandler done) override;
  [[nodiscard]] std::unique_ptr<Watch> watch(LockKind kind, const std::string& name,
                                             std::function<void()> changed) override;
  void abandon(const LockRequest& request) override;
  void renew(const Grant& grant, RenewHandler done) override;
  void release(const Grant& grant, ReleaseHandler done) override;

  void inspect(LockKind kind, const std::string& name, Handler<LockInfo> done) override;
  void list(LockKind kind, Handler<std::vector<LockInfo>> done) override;
  void break_lock(LockKind kind, const std::string& name, Handler<bool> done) override;
  void forget(const Forgetting& what, Handler<std::vector<std::string>> done) override;
  void diagnose(Handler<std::vector<Finding>> done) override;
  void close(std::function<void()> done) override;

 private:
  void server_connected(Server& server, bool acquires) override;
  void server_broken(Server& server, const Failure& why) override;
  void server_usable(Server& server, bool everyone) override;
  void slots_moved() override;
  void server_gone(Server& server) override;

  [[nodiscard]] Cluster::User& user() noexcept { return *this; }
  void try_until(TimePoint deadline, const LockRequest& request, TryHandler done);
  void check_eviction(Server& server);
  void warn_of_unknown_role(Server& server);
  void publish_forbidden();
  void subscribe_forbidden(const Failure& why);
  [[nodiscard]] std::optional<Failure> problem_with(LockKind kind, const std::string& name) const;
  [[nodiscard]] Subscriptions& subscriptions() noexcept;

  const Options options_;
  const std::shared_ptr<Sentinels> sentinels_;  // if any
  const std::string client_;                    // this client's part of its values, and of the names of its channels
  common::ConnectionNews news_;
  // The one server, or those of a cluster.
  std::optional<Server> only_;
  std::optional<Cluster> cluster_;
  Servers servers_;
  Acquirer acquirer_;
  Renewals renewals_;
  Cleanup cleanup_;
  WakeUps wake_ups_;
  std::optional<Subscriber> subscriber_;
  std::optional<ShardedSubscriber> sharded_;
  bool eviction_warned_ = false;
  bool role_warned_ = false;
  bool publish_warned_ = false;
  Lifetime lifetime_;
};

// redis://[[user]:password@]host[:6379][/db][?strategy=queue|broadcast|poll][&prefix=...][&replicas_ack=n]
// rediss://... with [&tls_ca=file][&tls_cert=file&tls_key=file]; and those of Sentinel and of a cluster (options.hpp)
[[nodiscard]] std::unique_ptr<Backend> make_redis_backend(BackendHost& host, const BackendConfig& config);

}  // namespace dlock::redis

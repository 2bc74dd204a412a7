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

#include "backends/redis/connection/streams.hpp"
#include "backends/redis/options.hpp"
#include "backends/redis/requests/acquirer.hpp"
#include "backends/redis/topology/topology.hpp"
#include "backends/redis/waiting/wake_ups.hpp"

namespace dlock::redis {

class Sentinels;

class RedisBackend final : public TryBackend, private Node::User {
 public:
  // streams: how connections are made; tests have their own. sentinels: those that the options name.
  RedisBackend(BackendHost& host, Options options, StreamFactory streams,
               std::shared_ptr<Sentinels> sentinels = nullptr);
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
  void on_state(Node& node, NodeState state) override;
  void on_subscribed(const std::string& channel) override { wake_ups_.on_subscribed(channel); }
  void on_message(const std::string& channel, const std::string& text) override { wake_ups_.on_message(channel, text); }
  void on_lost(const std::string& channel) override { wake_ups_.on_lost(channel); }
  void on_forbidden(const Failure& why) override;

  void try_until(TimePoint deadline, const LockRequest& request, TryHandler done);
  void check_eviction(Node& node);
  void warn_of_unknown_role(Node& node);
  void on_publish_forbidden();
  [[nodiscard]] std::optional<Failure> problem_with(LockKind kind, const std::string& name) const;

  const Options options_;
  const std::string client_;  // this client's part of its values, and of the names of its channels
  const std::unique_ptr<Topology> topology_;
  Acquirer acquirer_;
  Cleanup cleanup_;
  WakeUps wake_ups_;
  bool eviction_warned_ = false;
  bool role_warned_ = false;
  bool publish_warned_ = false;
  Lifetime lifetime_;
};

// Throws Error(invalid_argument) for a URL that is not as options.hpp says.
[[nodiscard]] std::unique_ptr<Backend> make_redis_backend(BackendHost& host, const BackendConfig& config);

}  // namespace dlock::redis

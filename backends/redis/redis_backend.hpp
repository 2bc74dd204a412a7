// redis:// and rediss://: locks in one Redis server; redis-sentinel:// and rediss-sentinel://: in whichever server is
// the master of a service. See docs/backends/redis.md for the layout of the keys and for what is guaranteed.
//
// Waiters stand in a queue at the server by default (queue_client.hpp); ?strategy=broadcast and ?strategy=poll use the
// ready-made contention of TryBackend.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <dlock/backend.hpp>
#include <dlock/lifetime.hpp>
#include <dlock/try_backend.hpp>

#include "backends/common/connection_news.hpp"
#include "backends/redis/connection/command_client.hpp"
#include "backends/redis/connection/outage.hpp"
#include "backends/redis/connection/subscriber.hpp"
#include "backends/redis/connection/wire.hpp"
#include "backends/redis/options.hpp"
#include "backends/redis/requests/acquirer.hpp"
#include "backends/redis/requests/release_request.hpp"
#include "backends/redis/requests/renewals.hpp"
#include "backends/redis/waiting/queue_client.hpp"
#include "backends/redis/waiting/wake_ups.hpp"

namespace dlock::redis {

class RedisBackend final : public TryBackend {
 public:
  // wires: how connections are made; tests have their own. sentinels: those that the options name.
  RedisBackend(BackendHost& host, Options options, WireFactory wires, std::shared_ptr<Sentinels> sentinels = nullptr);
  ~RedisBackend() override;

  [[nodiscard]] Capabilities capabilities() const noexcept override;

  [[nodiscard]] std::unique_ptr<Contention> contend(const LockRequest& request, GrantSink& sink) override;
  void try_acquire(const LockRequest& request, TryHandler done) override;
  [[nodiscard]] std::unique_ptr<Watch> watch(Space space, const std::string& name,
                                             std::function<void()> changed) override;
  void abandon(const LockRequest& request) override;
  void renew(const Grant& grant, RenewHandler done) override;
  void release(const Grant& grant, ReleaseHandler done) override;

  void inspect(Space space, const std::string& name, Handler<LockInfo> done) override;
  void list(Space space, Handler<std::vector<LockInfo>> done) override;
  void break_lock(Space space, const std::string& name, Handler<bool> done) override;
  void forget(const Forgetting& what, Handler<std::vector<std::string>> done) override;
  void diagnose(Handler<std::vector<Finding>> done) override;
  void close(std::function<void()> done) override;

 private:
  // One of the connections that carry commands.
  class CommandLink final : public common::ConnectionObserver {
   public:
    CommandLink(RedisBackend& backend, bool acquires) : backend_(backend), news_(backend.news_), acquires_(acquires) {}
    void connected() override {
      news_.connected();
      backend_.connected(acquires_);
    }
    void broken(const Failure& why) override {
      news_.broken(why);
      backend_.broken(why);
    }

   private:
    RedisBackend& backend_;
    common::ConnectionNews::Source news_;
    const bool acquires_;
  };

  void connected(bool acquires);
  void broken(const Failure& why);
  void outage_over(bool everyone);
  void try_until(TimePoint deadline, const LockRequest& request, TryHandler done);
  [[nodiscard]] CommandClient& acquiring() noexcept { return acknowledged_ ? *acknowledged_ : commands_; }
  void check_eviction();
  void publish_forbidden();
  void subscribe_forbidden(const Failure& why);
  [[nodiscard]] std::optional<Failure> problem_with(Space space, const std::string& name) const;

  const Options options_;
  const std::shared_ptr<Sentinels> sentinels_;  // if any
  const std::string client_;                    // this client's part of its values, and the name of its channel
  WakeUps wake_ups_;
  Outage outage_;
  common::ConnectionNews news_;
  CommandLink main_link_;
  CommandLink acquiring_link_;
  CommandClient commands_;
  std::optional<CommandClient> acknowledged_;  // acquires that wait for replicas
  Subscriber subscriber_;
  Acquirer acquirer_;
  Renewals renewals_;
  ReleasesOfKinds releases_;
  QueueClient queue_;
  bool eviction_checked_ = false;
  bool publish_warned_ = false;
  Lifetime lifetime_;
};

// redis://[[user]:password@]host[:6379][/db][?strategy=queue|broadcast|poll][&prefix=...][&replicas_ack=n]
// rediss://... with [&tls_ca=file][&tls_cert=file&tls_key=file]; and those of Sentinel (options.hpp)
[[nodiscard]] std::unique_ptr<Backend> make_redis_backend(BackendHost& host, const BackendConfig& config);

}  // namespace dlock::redis

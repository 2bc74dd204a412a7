// etcd://: locks in an etcd cluster. See docs/backends/etcd.md for the layout of the keys and for what is guaranteed.
//
// A client has one connection (client.hpp), one session, which is a lease of etcd (session.hpp), and one stream of
// watches (watches.hpp). Its locks are places in queues of keys (queue.hpp).
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <dlock/spi/backend.hpp>
#include <dlock/spi/lifetime.hpp>

#include "backends/common/connection_news.hpp"
#include "backends/etcd/connection/client.hpp"
#include "backends/etcd/connection/session.hpp"
#include "backends/etcd/connection/watches.hpp"
#include "backends/etcd/locks/queue.hpp"
#include "backends/etcd/options.hpp"

namespace dlock::etcd {

class EtcdBackend final : public Backend, private Client::User, private Session::User {
 public:
  // default_lease: of acquires that do not name one. members: makes connections.
  EtcdBackend(BackendHost& host, Options options, std::chrono::nanoseconds default_lease, MemberFactory members);
  ~EtcdBackend() override;

  [[nodiscard]] Capabilities capabilities() const noexcept override;
  [[nodiscard]] std::unique_ptr<Contention> contend(const LockRequest& request, GrantSink& sink) override;
  void release(const Grant& grant, ReleaseHandler done) override { queue_.release(grant, std::move(done)); }
  [[nodiscard]] std::unique_ptr<Watch> watch(LockKind kind, const std::string& name,
                                             std::function<void()> changed) override;
  void inspect(LockKind kind, const std::string& name, Handler<LockInfo> done) override;
  void list(LockKind kind, Handler<std::vector<LockInfo>> done) override;
  void break_lock(LockKind kind, const std::string& name, Handler<bool> done) override;
  void diagnose(Handler<std::vector<Finding>> done) override;
  // The end of the session removes all its keys.
  void close(std::function<void()> done) override { session_.close(std::move(done)); }

 private:
  void client_ready() override;
  void client_answered() override;
  void client_logged_in() override { watches_.client_ready(); }
  void client_down(const Failure& why, bool in_order) override;
  void session_ready() override { queue_.session_ready(); }
  void session_alive(TimePoint valid_until) override { queue_.session_alive(valid_until); }
  void session_suspended(const Failure& why) override;
  void session_lost(const Failure& why) override;
  void cluster_changed() override;
  [[nodiscard]] std::optional<Failure> problem_with(const std::string& name) const;

  BackendHost& host_;
  const Options options_;
  const std::chrono::nanoseconds default_lease_;
  common::ConnectionNews news_;
  common::ConnectionNews::Source connection_{news_};
  bool reached_ = false;  // a member has answered, so the observer learns of a loss
  Client client_;
  Session session_;
  Watches watches_;
  Queue queue_;
  Lifetime lifetime_;
};

// etcd://[user:password@]h1:2379,h2[?prefix=dlock/][&session_ttl=30s][&names=escaped|verbatim]; etcds:// with tls_ca,
// ...
[[nodiscard]] std::unique_ptr<Backend> make_etcd_backend(BackendHost& host, const BackendConfig& config);

}  // namespace dlock::etcd

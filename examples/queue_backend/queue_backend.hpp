// A complete backend for a lock service with a queue, across a network, against dlock's public headers only.
// docs/writing-a-backend.md explains it; queue_server.py is the service.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>

#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <dlock/spi/backend.hpp>

#include "queue_contention.hpp"
#include "session.hpp"

namespace example {

class QueueBackend final : public dlock::Backend {
 public:
  QueueBackend(dlock::BackendHost& host, const dlock::BackendConfig& config, const sockaddr_in& server)
      : session_(host, config, server) {}

  [[nodiscard]] dlock::Capabilities capabilities() const noexcept override {
    return {.backend = "queue",
            .scope = dlock::Scope::network,
            .lease_kind = dlock::LeaseKind::session,
            .fencing = dlock::FencingDurability::wall_clock,
            .fair = true,
            .wakes_one = true,
            .counts_waiters = true,
            .can_inspect = true,
            .can_break = true,
            .min_lease = std::chrono::milliseconds(100)};
  }
  [[nodiscard]] std::unique_ptr<dlock::Contention> contend(const dlock::LockRequest& request,
                                                           dlock::GrantSink& sink) override {
    auto contention = std::make_unique<QueueContention>(session_, request, sink);
    contention->start();
    return contention;
  }
  // Without an answer: the server carries it out later, or the connection breaks, which frees the lock, too.
  void release(const dlock::Grant& grant, ReleaseHandler done) override {
    using Status = dlock::ReleaseOutcome::Status;
    if (!session_.let_go(grant.owner)) return done({.status = Status::not_owner});
    session_.ask("UNLOCK\t" + grant.name + "\t" + grant.owner.to_string(),
                 [done = std::move(done)](const dlock::Result<Words>& answer) {
                   if (!answer.ok()) return done({.status = Status::failed, .failure = answer.failure()});
                   done({.status = answer.value()[0] == "FREED" ? Status::released : Status::not_owner});
                 });
  }
  void inspect(dlock::LockKind /*kind*/, const std::string& name, Handler<dlock::LockInfo> done) override {
    session_.ask("INSPECT\t" + name, [name, done = std::move(done)](const dlock::Result<Words>& answer) {
      if (!answer.ok()) return done(dlock::unanswered_question(answer.failure()));
      const Words& words = answer.value();
      done(dlock::LockInfo{.name = name,
                           .held = words[0] == "LOCK",
                           .holder = words[2],
                           .token = token_of(words[1]),
                           .waiters = token_of(words[3]).value()});
    });
  }
  void break_lock(dlock::LockKind /*kind*/, const std::string& name, Handler<bool> done) override {
    session_.ask("BREAK\t" + name, [done = std::move(done)](const dlock::Result<Words>& answer) {
      if (!answer.ok()) return done(answer.failure());
      done(answer.value()[0] == "FREED");
    });
  }

 private:
  Session session_;
};

// For queue://127.0.0.1:7000. Addresses only: to look up a name would block.
inline std::unique_ptr<dlock::Backend> make_queue_backend(dlock::BackendHost& host,
                                                          const dlock::BackendConfig& config) {
  config.url.require_no_parameters();
  const std::vector<dlock::Url::Host>& hosts = config.url.hosts();
  sockaddr_in server = {};
  server.sin_family = AF_INET;
  if (hosts.size() != 1 || !hosts[0].port || ::inet_pton(AF_INET, hosts[0].name.c_str(), &server.sin_addr) != 1) {
    throw dlock::Error(dlock::errc::invalid_argument, "queue:// takes one IPv4 address with a port");
  }
  server.sin_port = htons(*hosts[0].port);
  return std::make_unique<QueueBackend>(host, config, server);
}

}  // namespace example

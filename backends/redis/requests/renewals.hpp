// Extends leases and, with replicas_ack, waits for the replicas' word that they know of it: a renewal that no replica
// has is a lock that a promotion forgets.
//
// WAIT blocks its connection, so renewals that are to be acknowledged have one of their own, and go in batches with one
// WAIT for all of them. What is to be renewed while a batch is under way goes with the next one.
#pragma once

#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include <dlock/spi/backend.hpp>

#include "backends/redis/connection/servers.hpp"

namespace dlock::redis {

// In tasks only.
class Renewals {
 public:
  // client: this client's part of its values.
  Renewals(Servers& servers, std::string client) : servers_(servers), client_(std::move(client)) {}

  // Answers within the response timeout or a quarter of the lease, whichever is shorter.
  void renew(const Grant& grant, Backend::RenewHandler done);
  // It goes, and has answered what was asked.
  void forget(Server& server) { acknowledged_.erase(&server); }

 private:
  struct Renewal {
    Grant grant;
    TimePoint deadline;
    Backend::RenewHandler done;
    TimePoint sent = {};
    Server* at = nullptr;  // in whose batch it is, where replicas acknowledge
    bool asking = false;   // there, while the slot moves
    int redirections = 0;
    bool renewed = false;  // on the master
    bool judged = false;   // by the replicas' word, or by that none came
  };
  using Batch = std::vector<std::shared_ptr<Renewal>>;

  // Of a server, where replicas acknowledge.
  struct Batches {
    Batch next;
    bool under_way = false;
  };

  [[nodiscard]] std::string key_of(const Grant& grant) const;
  static void fail(Renewal& renewal, Failure why);
  static void answered(Server& server, Renewal& renewal, const Result<Reply>& reply, TimePoint sent);
  void enqueue(Server& server, const std::shared_ptr<Renewal>& renewal);
  void start_if_idle(Server& server);
  void replied(Server& server, const std::shared_ptr<Renewal>& renewal, const Result<Reply>& reply, TimePoint sent);
  void acknowledged(Server& server, const Batch& batch, std::uint64_t wanted, const Result<Reply>& reply);

  Servers& servers_;
  const std::string client_;
  std::unordered_map<Server*, Batches> acknowledged_;
};

}  // namespace dlock::redis

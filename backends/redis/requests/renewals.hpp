// Extends leases and, with replicas_ack, waits for the replicas' word that they know of it: a renewal that no replica
// has is a lock that a promotion forgets.
//
// WAIT blocks its connection, so renewals that are to be acknowledged have one of their own, and go in batches with one
// WAIT for all of them. What is to be renewed while a batch is under way goes with the next one.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <dlock/backend.hpp>

#include "backends/redis/connection/command_client.hpp"
#include "backends/redis/sentinel/sentinels.hpp"

namespace dlock::redis {

// In tasks only.
class Renewals {
 public:
  // commands: the connection for all that does not block. client: this client's part of its values. sentinels: nullptr
  // for none.
  Renewals(CommandClient& commands, const WireFactory& wires, std::string client, Sentinels* sentinels);

  // Answers within the response timeout or a quarter of the lease, whichever is shorter.
  void renew(const Grant& grant, Backend::RenewHandler done);
  // The connection leads to the wrong server, or may: makes another.
  void reconnect(const Failure& why) {
    if (acknowledged_) acknowledged_->reconnect(why);
  }

 private:
  struct Renewal {
    Grant grant;
    TimePoint deadline;
    Backend::RenewHandler done;
    TimePoint sent = {};
    bool renewed = false;  // on the master
    bool judged = false;   // by the replicas' word, or by that none came
  };
  using Batch = std::vector<std::shared_ptr<Renewal>>;

  void ask(CommandClient& commands, const std::shared_ptr<Renewal>& renewal, bool acknowledged);
  void start_batch();
  void acknowledged(const Batch& batch, std::uint64_t wanted, const Result<Reply>& reply);

  CommandClient& commands_;
  const std::string client_;
  Sentinels* const sentinels_;
  std::optional<CommandClient> acknowledged_;
  Batch next_;
  bool under_way_ = false;
};

}  // namespace dlock::redis

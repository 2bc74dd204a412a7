// Sharded channels: each is listened to at the master of its slot, wherever that is.
#pragma once

#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include <dlock/spi/executor.hpp>
#include <dlock/spi/lifetime.hpp>

#include "backends/redis/cluster/cluster.hpp"
#include "backends/redis/connection/subscriber.hpp"
#include "backends/redis/connection/subscriptions.hpp"
#include "backends/redis/connection/wire.hpp"

namespace dlock::redis {

// In tasks only.
class ShardedSubscriber final : public Subscriptions {
 public:
  ShardedSubscriber(Cluster& cluster, WireFactory wires, Listener& listener);
  ~ShardedSubscriber() override;

  void subscribe(const std::string& channel) override;
  void unsubscribe(const std::string& channel) override;
  void proven(const std::string& channel) override;
  // As Subscriber::hears().
  [[nodiscard]] bool hears(const std::string& channel) const;
  [[nodiscard]] bool is_forbidden() const noexcept override { return forbidden_; }

  // Slots have other masters now.
  void slots_moved();
  // Its connections break, and it may not be what it was: nothing is listened to there, until it is usable again.
  void server_broken(Server& server);
  void server_usable(Server& server);
  void server_gone(Server& server);

 private:
  class Node;

  [[nodiscard]] Node& node_of(Server& server);
  void listen(const std::string& channel);
  void lost(const Node& node, const std::string& channel);
  void forbidden(const Failure& why);
  [[nodiscard]] std::vector<std::string> channels_at(const Node& node) const;

  Cluster& cluster_;
  const WireFactory wires_;
  Listener& listener_;
  std::unordered_map<Server*, std::unique_ptr<Node>> nodes_;
  std::unordered_map<std::string, Node*> channels_;  // nullptr: nowhere just now
  bool forbidden_ = false;
  Lifetime lifetime_;
};

}  // namespace dlock::redis

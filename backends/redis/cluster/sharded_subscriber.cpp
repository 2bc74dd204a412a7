#include "backends/redis/cluster/sharded_subscriber.hpp"

#include <utility>

namespace dlock::redis {

// One node's connection.
class ShardedSubscriber::Node final : public Subscriptions::Listener {
 public:
  Node(ShardedSubscriber& all, Server& server)
      : all_(all), connection(all.cluster_.executor(), server.options(), all.wires_, *this) {}

  void subscribed(const std::string& channel) override { all_.listener_.subscribed(channel); }
  void message(const std::string& channel, const std::string& text) override { all_.listener_.message(channel, text); }
  void lost(const std::string& channel) override { all_.lost(*this, channel); }
  void interrupted() override {
    const Lifetime::Watch life = all_.lifetime_.watch();
    for (const std::string& channel : all_.channels_at(*this)) {
      all_.listener_.lost(channel);
      if (life.over()) return;
    }
    all_.cluster_.refresh();
  }
  void forbidden(const Failure& why) override { all_.forbidden(why); }

 private:
  ShardedSubscriber& all_;

 public:
  Subscriber connection;
};

ShardedSubscriber::ShardedSubscriber(Cluster& cluster, WireFactory wires, Listener& listener)
    : cluster_(cluster), wires_(std::move(wires)), listener_(listener) {}

ShardedSubscriber::~ShardedSubscriber() = default;

ShardedSubscriber::Node& ShardedSubscriber::node_of(Server& server) {
  auto& node = nodes_[&server];
  if (!node) node = std::make_unique<Node>(*this, server);
  return *node;
}

void ShardedSubscriber::subscribe(const std::string& channel) {
  if (forbidden_ || channels_.contains(channel)) return;
  listen(channel);
  cluster_.keep_fresh(true);
}

void ShardedSubscriber::listen(const std::string& channel) {
  Node& node = node_of(cluster_.of(channel));
  channels_[channel] = &node;
  node.connection.subscribe(channel);
}

void ShardedSubscriber::unsubscribe(const std::string& channel) {
  const auto found = channels_.find(channel);
  if (found == channels_.end()) return;
  Node* const node = found->second;
  channels_.erase(found);
  if (node != nullptr) node->connection.unsubscribe(channel);
  if (channels_.empty()) cluster_.keep_fresh(false);
}

void ShardedSubscriber::proven(const std::string& channel) {
  const auto found = channels_.find(channel);
  if (found != channels_.end() && found->second != nullptr) found->second->connection.proven(channel);
}

bool ShardedSubscriber::hears(const std::string& channel) const {
  const auto found = channels_.find(channel);
  return found != channels_.end() && found->second != nullptr && found->second->connection.hears(channel);
}

std::vector<std::string> ShardedSubscriber::channels_at(const Node& node) const {
  std::vector<std::string> out;
  for (const auto& [channel, at] : channels_) {
    if (at == &node) out.push_back(channel);
  }
  return out;
}

// The node has given it up. Where it belongs is seen when the map has been read.
void ShardedSubscriber::lost(const Node& node, const std::string& channel) {
  const auto found = channels_.find(channel);
  if (found == channels_.end() || found->second != &node) return;  // it is listened to elsewhere by now
  found->second = nullptr;
  cluster_.masters(cluster_.answer_by(),
                   [this, life = lifetime_.watch(), channel](const Result<std::vector<common::Host>>&) {
                     if (life.over()) return;
                     const auto still = channels_.find(channel);
                     if (still != channels_.end() && still->second == nullptr) listen(channel);
                   });
  listener_.lost(channel);
}

void ShardedSubscriber::slots_moved() {
  std::vector<std::string> moved;
  for (const auto& [channel, node] : channels_) {
    const auto owner = nodes_.find(&cluster_.of(channel));
    if (node == nullptr || owner == nodes_.end() || owner->second.get() != node) moved.push_back(channel);
  }
  const Lifetime::Watch life = lifetime_.watch();
  for (const std::string& channel : moved) {
    const auto found = channels_.find(channel);
    if (found == channels_.end()) continue;
    if (found->second != nullptr) found->second->connection.unsubscribe(channel);
    listen(channel);
    listener_.lost(channel);
    if (life.over()) return;
  }
}

void ShardedSubscriber::server_broken(Server& server) {
  const auto found = nodes_.find(&server);
  if (found == nodes_.end()) return;
  found->second->connection.rest();
  const Lifetime::Watch life = lifetime_.watch();
  for (const std::string& channel : channels_at(*found->second)) {
    listener_.lost(channel);
    if (life.over()) return;
  }
}

void ShardedSubscriber::server_usable(Server& server) {
  const auto found = nodes_.find(&server);
  if (found != nodes_.end()) found->second->connection.resume();
}

void ShardedSubscriber::server_gone(Server& server) {
  const auto found = nodes_.find(&server);
  if (found == nodes_.end()) return;
  const std::unique_ptr<Node> node = std::move(found->second);
  nodes_.erase(found);
  const Lifetime::Watch life = lifetime_.watch();
  for (const std::string& channel : channels_at(*node)) {
    lost(*node, channel);
    if (life.over()) return;
  }
}

void ShardedSubscriber::forbidden(const Failure& why) {
  if (!std::exchange(forbidden_, true)) listener_.forbidden(why);
}

}  // namespace dlock::redis

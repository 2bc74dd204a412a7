#include "backends/redis/topology/node.hpp"

#include <utility>

namespace dlock::redis {

Node::Node(Executor& executor, Options options, const StreamFactory& streams, common::ConnectionNews& news, User& user)
    : options_(std::move(options)),
      user_(user),
      outage_(executor,
              [this](bool everyone) {
                subscriber_.resume();
                if (everyone) user_.on_state(*this, NodeState::usable);
              }),
      common_(*this, executor, streams, news, options_.replicas_ack == 0),
      subscriber_(executor, options_, streams, user) {
  if (options_.replicas_ack == 0) return;
  acknowledged_.emplace(*this, executor, streams, news, true);
  replica_acks_.emplace(acknowledged_->client);
}

CommandClient& Node::line(Line which) noexcept {
  return which == Line::acknowledged && acknowledged_ ? acknowledged_->client : common_.client;
}

void Node::Connection::opened() {
  if (!acquires_) return;
  node_.outage_.reconnected();
  node_.user_.on_state(node_, NodeState::connected);
}

// The name may lead to another server now, as after a failover. A message is received only where others publish, so the
// subscriber connects again, too, after a command was answered on a new connection.
void Node::Connection::broken(const Failure& why) {
  news_.broken(why);
  node_.outage_.failed({errc::unavailable, why.detail});
  node_.subscriber_.rest();
  node_.user_.on_state(node_, NodeState::down);
  node_.reconnect(why);
}

void Node::reconnect(const Failure& why) {
  common_.client.reconnect(why);
  if (acknowledged_) acknowledged_->client.reconnect(why);
}

void Node::rest(const Failure& why) {
  subscriber_.rest();
  const Lifetime::Watch life = lifetime_.watch();
  common_.client.rest(why);
  if (life.over()) return;  // the handler of a failed request may end everything
  common_.not_needed();
  if (!acknowledged_) return;
  acknowledged_->client.rest(why);
  if (!life.over()) acknowledged_->not_needed();
}

void Node::stop() {
  common_.client.stop();
  if (acknowledged_) acknowledged_->client.stop();
}

}  // namespace dlock::redis

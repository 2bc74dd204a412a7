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

std::uint64_t Node::send(Request request, TimePoint deadline, CommandHandler done, bool asking) {
  CommandClient& client = line(request.line);
  if (asking) (void)client.request({"ASKING"}, deadline, [](const Result<Reply>&, TimePoint) {});
  if (request.script == nullptr) return client.request(std::move(request.words), deadline, std::move(done));
  return client.run(*request.script, std::move(request.words), deadline, std::move(done), request.at_the_end, asking);
}

void Node::Connection::opened() {
  if (!acquires_) return;
  node_.outage_.reconnected();
  node_.user_.on_state(node_, NodeState::connected);
}

// The name may lead to a different server now, as after a failover. The subscriber must be on the server where others
// publish, so it reconnects, too, once a command was answered on a new connection.
void Node::Connection::broken(const Failure& why) {
  news_.broken(why);
  node_.outage_.failed({errc::unavailable, why.detail});
  node_.subscriber_.rest();
  node_.user_.on_state(node_, NodeState::down);
  node_.reconnect(why);
}

void Node::reconnect(const Failure& why) {
  const Lifetime::Watch life = lifetime_.watch();
  common_.client.reconnect(why);
  if (life.over() || !acknowledged_) return;  // the handler of a failed request may end everything
  acknowledged_->client.reconnect(why);
}

void Node::rest(const Failure& why) {
  subscriber_.rest();
  const Lifetime::Watch life = lifetime_.watch();
  common_.client.rest(why);
  if (life.over()) return;
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

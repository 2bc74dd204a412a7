#include "backends/redis/connection/server.hpp"

#include <utility>

namespace dlock::redis {

Server::Server(Executor& executor, Options options, const WireFactory& wires, common::ConnectionNews& news, User& user)
    : options_(std::move(options)),
      user_(user),
      outage_(executor, [this](bool everyone) { user_.server_usable(*this, everyone); }),
      common_observer_(*this, news, options_.replicas_ack == 0),
      acquiring_observer_(*this, news, true),
      commands_(executor, options_, wires, &common_observer_) {
  if (options_.replicas_ack == 0) return;
  acquiring_.emplace(executor, options_, wires, &acquiring_observer_);
  renewing_.emplace(executor, options_, wires, nullptr);
}

CommandClient& Server::line(Line which) noexcept {
  if (which == Line::acquires && acquiring_) return *acquiring_;
  if (which == Line::renewals && renewing_) return *renewing_;
  return commands_;
}

void Server::Observer::opened() {
  if (acquires_) server_.outage_.reconnected();
  server_.user_.server_connected(server_, acquires_);
}

// The name may lead to another server now, as after a failover.
void Server::Observer::broken(const Failure& why) {
  news_.broken(why);
  server_.outage_.failed({errc::unavailable, why.detail});
  server_.user_.server_broken(server_, why);
  server_.reconnect(why);
}

void Server::reconnect(const Failure& why) {
  commands_.reconnect(why);
  if (acquiring_) acquiring_->reconnect(why);
  if (renewing_) renewing_->reconnect(why);
}

void Server::rest(const Failure& why) {
  const Lifetime::Watch life = lifetime_.watch();
  for (CommandClient* const client :
       {&commands_, acquiring_ ? &*acquiring_ : nullptr, renewing_ ? &*renewing_ : nullptr}) {
    if (client != nullptr) client->rest(why);
    if (life.over()) return;  // the handler of a failed request may end everything
  }
  common_observer_.not_needed();
  acquiring_observer_.not_needed();
}

void Server::stop() {
  commands_.stop();
  if (acquiring_) acquiring_->stop();
}

}  // namespace dlock::redis

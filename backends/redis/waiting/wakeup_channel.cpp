#include "backends/redis/waiting/wakeup_channel.hpp"

#include <optional>
#include <utility>

#include "backends/redis/requests/answers.hpp"

namespace dlock::redis {

namespace {

// After so many, waiters poll for as long as the connections stand. Connections that are made again because of a failed
// probe do not begin a new count.
constexpr int most_failed_probes = 5;

}  // namespace

WakeupChannel::WakeupChannel(Servers& servers, Subscriptions& subscriptions, std::string name,
                             std::function<void()> became_reachable)
    : servers_(servers),
      subscriptions_(subscriptions),
      name_(std::move(name)),
      became_reachable_(std::move(became_reachable)),
      probe_timer_(servers.executor()) {}

void WakeupChannel::enter(State state) {
  ++subscription_;
  state_ = state;
  probe_in_flight_ = false;
  probe_timer_.disarm();
}

void WakeupChannel::subscribe() {
  if (state_ != State::unsubscribed) return;
  if (subscriptions_.is_forbidden()) return on_forbidden();
  state_ = State::subscribing;
  subscriptions_.subscribe(name_);
}

void WakeupChannel::on_subscribed() {
  enter(State::probing);
  if (!std::exchange(reconnecting_, false)) {
    failed_probes_ = 0;
    probe_backoff_.reset();
  }
  probe();
}

void WakeupChannel::on_lost() {
  enter(state_ == State::unsubscribed ? State::unsubscribed : State::subscribing);
}

void WakeupChannel::on_forbidden() {
  enter(State::poll_only);
}

void WakeupChannel::probe() {
  const bool subscribed = state_ == State::probing || state_ == State::reachable ||
                          (state_ == State::poll_only && !subscriptions_.is_forbidden());
  if (!subscribed || probe_in_flight_) return;
  probe_in_flight_ = true;
  // An empty message has no meaning; the server answers how many receive it.
  (void)servers_.request(
      Line::acquires, name_, {servers_.are_a_cluster() ? "SPUBLISH" : "PUBLISH", name_, ""}, servers_.answer_by(),
      [this, life = lifetime_.watch(), about = subscription_](Server* server, const Result<Reply>& reply, TimePoint) {
        if (!life.over() && about == subscription_) probed(server, reply);
      });
}

void WakeupChannel::probed(const Server* server, const Result<Reply>& reply) {
  probe_in_flight_ = false;
  const Result<std::uint64_t> receivers = reply.ok() ? read_number(reply.value()) : reply.failure();
  if (receivers.ok() && receivers.value() > 0) {
    failed_probes_ = 0;
    probe_backoff_.reset();
    if (std::exchange(state_, State::reachable) == State::reachable) return;
    const auto notify = became_reachable_;  // which may destroy this
    return notify();
  }
  // Without the right to publish, it stays unknown.
  const bool denied = !receivers.ok() && receivers.failure().code == errc::access_denied;
  if (denied || ++failed_probes_ > most_failed_probes) {
    state_ = State::poll_only;
    return;
  }
  state_ = State::probing;
  // The server that does not count our subscriber. If it did not answer, nothing is known about it.
  std::optional<common::Host> elsewhere;
  if (receivers.ok()) elsewhere = server->options().host;
  probe_timer_.arm(
      saturating_add(servers_.executor().now(), probe_backoff_.next(servers_.executor())), [this, elsewhere] {
        // A cluster's map says where to subscribe. With a single server, new connections lead to the server that those
        // of others lead to.
        Server* const probed = elsewhere ? servers_.master_at(*elsewhere) : nullptr;
        if (probed != nullptr) {
          reconnecting_ = !servers_.are_a_cluster();
          const std::string name = probed->options().endpoint();
          servers_.mistook(*probed, {errc::unavailable, name + ": not the server that the subscriber is connected to"});
        }
        if (!elsewhere || servers_.are_a_cluster()) probe();
      });
}

}  // namespace dlock::redis

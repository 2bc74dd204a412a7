#include "backends/redis/waiting/wakeup_channel.hpp"

#include <optional>
#include <utility>

#include "backends/redis/connection/server_info.hpp"
#include "backends/redis/requests/keys.hpp"

namespace dlock::redis {

namespace {

// After so many, waiters poll for as long as the connections last. A reconnect because of a failed probe does not reset
// the count.
constexpr int most_failed_probes = 5;

}  // namespace

WakeupChannel::WakeupChannel(Topology& topology, std::string name, std::function<void()> became_reachable)
    : topology_(topology),
      name_(std::move(name)),
      became_reachable_(std::move(became_reachable)),
      probe_timer_(topology.executor()) {}

void WakeupChannel::enter(State state) {
  ++subscription_;
  state_ = state;
  probe_in_flight_ = false;
  probe_timer_.disarm();
}

void WakeupChannel::subscribe() {
  if (state_ != State::unsubscribed) return;
  if (topology_.is_forbidden()) return on_forbidden();
  state_ = State::subscribing;
  topology_.subscribe(name_);
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
                          (state_ == State::poll_only && !topology_.is_forbidden());
  if (!subscribed || probe_in_flight_) return;
  probe_in_flight_ = true;
  // An empty message has no meaning; the server answers how many receive it.
  (void)topology_.send(
      name_, {.words = {publish_command(topology_.options()), name_, ""}, .line = Line::acknowledged},
      topology_.answer_by(),
      [this, life = lifetime_.watch(), about = subscription_](const Node* node, const Result<Reply>& reply, TimePoint) {
        if (!life.over() && about == subscription_) probed(node, reply);
      });
}

void WakeupChannel::probed(const Node* node, const Result<Reply>& reply) {
  probe_in_flight_ = false;
  const Result<std::uint64_t> receivers = reply.ok() ? read_number(reply.value()) : reply.failure();
  if (receivers.ok() && receivers.value() > 0) {
    failed_probes_ = 0;
    probe_backoff_.reset();
    if (std::exchange(state_, State::reachable) == State::reachable) return;
    const auto notify = became_reachable_;  // which may destroy this
    return notify();
  }
  // Without the right to publish, it stays unknown whether wake-ups arrive.
  const bool denied = !receivers.ok() && receivers.failure().code == errc::access_denied;
  if (denied || ++failed_probes_ > most_failed_probes) {
    state_ = State::poll_only;
    return;
  }
  state_ = State::probing;
  // The server that does not count the subscriber; unset if it did not answer.
  std::optional<common::Host> elsewhere;
  if (receivers.ok()) elsewhere = node->options().host;
  probe_timer_.arm(
      saturating_add(topology_.executor().now(), probe_backoff_.next(topology_.executor())), [this, elsewhere] {
        Node* const wrong = elsewhere ? topology_.master_at(*elsewhere) : nullptr;
        reconnecting_ = wrong != nullptr &&
                        topology_.on_wrong_node(
                            *wrong, {errc::unavailable, wrong->options().endpoint() +
                                                            ": not the server that the subscriber is connected to"});
        if (!reconnecting_) probe();
      });
}

}  // namespace dlock::redis

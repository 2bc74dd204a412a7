// A channel on which waiters of this client are woken, and whether a wake-up can reach them. Redis discards a waiter
// that relies on messages if its channel has no subscriber. The subscriber may be on a different server than the
// publishers: after a failover, if a name leads to several servers, or through a proxy. So a channel counts as
// reachable only after the server that gets the waiters' requests has counted its subscriber.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include <dlock/spi/backoff.hpp>
#include <dlock/spi/executor.hpp>
#include <dlock/spi/lifetime.hpp>

#include "backends/redis/topology/topology.hpp"

namespace dlock::redis {

//   unsubscribed --subscribe()--> subscribing --confirmed--> probing --counted--> reachable
//                                      ^                      |   ^                  |
//                                      +---- on_lost() -------+   +-- not counted ---+
//                                                             +--> poll_only: nobody is counted, or rights are missing
//
// In tasks only.
class WakeupChannel {
 public:
  enum class State { unsubscribed, subscribing, probing, reachable, poll_only };

  // became_reachable: may destroy the channel.
  WakeupChannel(Topology& topology, std::string name, std::function<void()> became_reachable);

  [[nodiscard]] const std::string& name() const noexcept { return name_; }
  [[nodiscard]] State state() const noexcept { return state_; }
  [[nodiscard]] bool reachable() const noexcept { return state_ == State::reachable; }
  // Grows with each subscription and its loss.
  [[nodiscard]] std::uint64_t subscription() const noexcept { return subscription_; }

  void subscribe();
  void on_subscribed();
  // The connection broke, or the node gave the channel up. The topology subscribes again by itself.
  void on_lost();
  // This client may not subscribe.
  void on_forbidden();
  // Sends a message to count its receivers, unless one is in flight or the channel is not subscribed to.
  void probe();

 private:
  void enter(State state);
  void probed(const Node* node, const Result<Reply>& reply);

  Topology& topology_;
  const std::string name_;
  const std::function<void()> became_reachable_;
  State state_ = State::unsubscribed;
  std::uint64_t subscription_ = 0;
  bool probe_in_flight_ = false;
  int failed_probes_ = 0;      // in a row
  bool reconnecting_ = false;  // because of a failed probe
  Backoff probe_backoff_{std::chrono::seconds(5)};
  Timer probe_timer_;
  Lifetime lifetime_;
};

}  // namespace dlock::redis

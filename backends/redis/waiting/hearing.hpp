// Whether a channel is heard where its messages are published. A waiter that counts as heard, and whose channel has no
// subscriber, counts as dead. So one is heard only when the server that its questions go to has counted its subscriber,
// which may listen at another one: after a failover, where a name leads to several servers, or through a proxy.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include <dlock/spi/backoff.hpp>
#include <dlock/spi/executor.hpp>
#include <dlock/spi/lifetime.hpp>

#include "backends/redis/connection/servers.hpp"
#include "backends/redis/connection/subscriptions.hpp"

namespace dlock::redis {

// In tasks only.
class Hearing {
 public:
  // now_heard: called when it is heard and was not before.
  Hearing(Servers& servers, Subscriptions& subscriptions, std::string channel, std::function<void()> now_heard);

  [[nodiscard]] const std::string& channel() const noexcept { return channel_; }
  [[nodiscard]] bool heard() const { return heard_ && subscriptions_.hears(channel_); }
  // Which of its subscriptions this is, so that what was known in an earlier one can be told.
  [[nodiscard]] std::uint64_t subscription() const noexcept { return subscription_; }

  // The channel is subscribed to from now on.
  void subscribed();
  // It is not any more.
  void unsubscribed();
  // Asks the server, unless it is being asked.
  void check();

 private:
  void checked(const Server* server, const Result<Reply>& reply);

  Servers& servers_;
  Subscriptions& subscriptions_;
  const std::string channel_;
  const std::function<void()> now_heard_;
  bool heard_ = false;
  std::uint64_t subscription_ = 0;
  bool checking_ = false;
  int failed_checks_ = 0;      // in a row
  bool reconnecting_ = false;  // because of them
  Backoff check_backoff_{std::chrono::seconds(5)};
  Timer check_timer_;
  Lifetime lifetime_;
};

}  // namespace dlock::redis

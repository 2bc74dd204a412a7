// What comes over the channels that are listened to, and whom it concerns: a client's own channels its queue, the
// channel of a lock those who watch it.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include <dlock/spi/try_backend.hpp>

#include "backends/common/watchers.hpp"
#include "backends/redis/connection/subscriptions.hpp"
#include "backends/redis/waiting/queue_client.hpp"

namespace dlock::redis {

// In tasks only.
class WakeUps final : public Subscriptions::Listener {
 public:
  WakeUps(Executor& executor, std::function<void(const Failure&)> forbidden)
      : forbidden_(std::move(forbidden)),
        watchers_(executor, [this](const std::string& channel) { subscriptions_->unsubscribe(channel); }) {}
  // Before anything happens.
  void connect(Subscriptions& subscriptions, QueueClient& queue) {
    subscriptions_ = &subscriptions;
    queue_ = &queue;
  }

  // Calls changed whenever the channel says something, and once when that is certain from now on.
  [[nodiscard]] std::unique_ptr<Watch> watch(const std::string& channel, std::function<void()> changed);

  // Something is whole again: all watchers look for themselves.
  void recovered() { watchers_.tell_all(); }
  // One watcher looks, to find out whether something is whole again.
  void look() { watchers_.tell_any(); }

  void subscribed(const std::string& channel) override;
  void message(const std::string& channel, const std::string& text) override;
  void lost(const std::string& channel) override;
  void interrupted() override;
  void forbidden(const Failure& why) override { forbidden_(why); }

 private:
  const std::function<void(const Failure&)> forbidden_;
  Subscriptions* subscriptions_ = nullptr;
  QueueClient* queue_ = nullptr;
  common::Watchers watchers_;  // by channel
};

}  // namespace dlock::redis

// What comes over the subscriber connection, and whom it concerns: a client's own channel its queue, the channel of a
// lock those who watch it.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include <dlock/try_backend.hpp>

#include "backends/common/watchers.hpp"
#include "backends/redis/connection/subscriber.hpp"
#include "backends/redis/waiting/queue_client.hpp"

namespace dlock::redis {

// In tasks only.
class WakeUps final : public Subscriber::Listener {
 public:
  WakeUps(Executor& executor, std::function<void(const Failure&)> forbidden)
      : forbidden_(std::move(forbidden)),
        watchers_(executor, [this](const std::string& channel) { subscriber_->unsubscribe(channel); }) {}
  // Before anything happens.
  void connect(Subscriber& subscriber, QueueClient& queue) {
    subscriber_ = &subscriber;
    queue_ = &queue;
  }

  // Calls changed whenever the lock of that key becomes free, and once when that is certain from now on.
  [[nodiscard]] std::unique_ptr<Watch> watch(const std::string& lock_key, std::function<void()> changed);

  // Something is whole again: all watchers look for themselves.
  void recovered() { watchers_.tell_all(); }
  // One watcher looks, to find out whether something is whole again.
  void look() { watchers_.tell_any(); }

  void subscribed(const std::string& channel) override;
  void message(const std::string& channel, const std::string& text) override;
  void interrupted() override;
  void forbidden(const Failure& why) override { forbidden_(why); }

 private:
  const std::function<void(const Failure&)> forbidden_;
  Subscriber* subscriber_ = nullptr;
  QueueClient* queue_ = nullptr;
  common::Watchers watchers_;  // by channel
};

}  // namespace dlock::redis

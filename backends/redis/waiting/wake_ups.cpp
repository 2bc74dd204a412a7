#include "backends/redis/waiting/wake_ups.hpp"

#include <utility>

#include "backends/redis/requests/keys.hpp"

namespace dlock::redis {

std::unique_ptr<Watch> WakeUps::watch(const std::string& lock_key, std::function<void()> changed) {
  const std::string channel = lock_channel(lock_key);
  auto watch = watchers_.watch(channel, std::move(changed));
  subscriber_->subscribe(channel);
  return watch;
}

void WakeUps::subscribed(const std::string& channel) {
  if (channel == queue_->channel()) return queue_->subscribed();
  watchers_.tell_all(channel);
}

void WakeUps::message(const std::string& channel, const std::string& text) {
  if (channel != queue_->channel()) {
    subscriber_->proven();
    return watchers_.tell_all(channel);
  }
  if (text.empty()) return;  // our own question whether we are heard
  subscriber_->proven();
  queue_->told(text);
}

void WakeUps::interrupted() {
  queue_->unsubscribed();
  queue_->recovered();
}

}  // namespace dlock::redis

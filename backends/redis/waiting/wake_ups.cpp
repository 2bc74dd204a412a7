#include "backends/redis/waiting/wake_ups.hpp"

#include <utility>

namespace dlock::redis {

std::unique_ptr<Watch> WakeUps::watch(const std::string& channel, std::function<void()> changed) {
  auto watch = watchers_.watch(channel, std::move(changed));
  subscriptions_->subscribe(channel);
  return watch;
}

void WakeUps::subscribed(const std::string& channel) {
  if (!queue_->subscribed(channel)) watchers_.tell_all(channel);
}

void WakeUps::message(const std::string& channel, const std::string& text) {
  const bool ours = queue_->listens_to(channel);
  if (ours && text.empty()) return;  // our own question whether we are heard
  subscriptions_->proven(channel);
  ours ? queue_->told(text) : watchers_.tell_all(channel);
}

// Watchers are told when it is subscribed to again.
void WakeUps::lost(const std::string& channel) {
  queue_->lost(channel);
}

void WakeUps::interrupted() {
  queue_->unsubscribed();
  queue_->recovered();
}

}  // namespace dlock::redis

#include "backends/redis/wake_ups.hpp"

#include <utility>
#include <vector>

#include "backends/redis/keys.hpp"

namespace dlock::redis {

class WakeUps::ChannelWatch final : public Watch {
 public:
  ChannelWatch(WakeUps& wake_ups, std::string channel, std::uint64_t id)
      : wake_ups_(wake_ups), channel_(std::move(channel)), id_(id) {}
  ~ChannelWatch() override { wake_ups_.leave(channel_, id_); }

 private:
  WakeUps& wake_ups_;
  const std::string channel_;
  const std::uint64_t id_;
};

std::unique_ptr<Watch> WakeUps::watch(const std::string& lock_key, std::function<void()> changed) {
  const std::string channel = lock_channel(lock_key);
  const std::uint64_t id = next_id_++;
  watchers_[channel].emplace(id, std::move(changed));
  subscriber_->subscribe(channel);
  return std::make_unique<ChannelWatch>(*this, channel, id);
}

void WakeUps::leave(const std::string& channel, std::uint64_t id) {
  const auto found = watchers_.find(channel);
  found->second.erase(id);
  if (!found->second.empty()) return;
  watchers_.erase(found);
  subscriber_->unsubscribe(channel);
}

void WakeUps::subscribed(const std::string& channel) {
  if (channel == queue_->channel()) return queue_->subscribed();
  tell(channel);
}

void WakeUps::message(const std::string& channel, const std::string& text) {
  if (channel != queue_->channel()) {
    subscriber_->proven();
    return tell(channel);
  }
  if (text.empty()) return;  // our own question whether we are heard
  subscriber_->proven();
  queue_->told(text);
}

void WakeUps::interrupted() {
  queue_->unsubscribed();
  queue_->recovered();
}

void WakeUps::recovered() {
  std::vector<std::string> channels;
  channels.reserve(watchers_.size());
  for (const auto& [channel, watchers] : watchers_) channels.push_back(channel);
  for (const std::string& channel : channels) tell(channel);
}

void WakeUps::look() {
  if (watchers_.empty()) return;
  const auto changed = watchers_.begin()->second.begin()->second;
  changed();
}

void WakeUps::forbidden(const Failure& why) {
  forbidden_(why);
}

// Whoever is told may end its own watch and those of others.
void WakeUps::tell(const std::string& channel) {
  std::vector<std::uint64_t> ids;
  if (const auto found = watchers_.find(channel); found != watchers_.end()) {
    ids.reserve(found->second.size());
    for (const auto& [id, changed] : found->second) ids.push_back(id);
  }
  for (const std::uint64_t id : ids) {
    const auto found = watchers_.find(channel);
    if (found == watchers_.end()) return;
    const auto watcher = found->second.find(id);
    if (watcher == found->second.end()) continue;
    const auto changed = watcher->second;
    changed();
  }
}

}  // namespace dlock::redis

// What comes over the subscriber connection, and whom it concerns: a client's own channel its queue, the channel of a
// lock those who watch it.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>

#include <dlock/try_backend.hpp>

#include "backends/redis/queue_client.hpp"
#include "backends/redis/subscriber.hpp"

namespace dlock::redis {

// In tasks only.
class WakeUps final : public Subscriber::Listener {
 public:
  explicit WakeUps(std::function<void(const Failure&)> forbidden) : forbidden_(std::move(forbidden)) {}
  // Before anything happens.
  void connect(Subscriber& subscriber, QueueClient& queue) {
    subscriber_ = &subscriber;
    queue_ = &queue;
  }

  // Calls changed whenever the lock of that key becomes free, and once when that is certain from now on.
  [[nodiscard]] std::unique_ptr<Watch> watch(const std::string& lock_key, std::function<void()> changed);

  // Something is whole again: all watchers look for themselves.
  void recovered();
  // One watcher looks, to find out whether something is whole again.
  void look();

  void subscribed(const std::string& channel) override;
  void message(const std::string& channel, const std::string& text) override;
  void interrupted() override;
  void forbidden(const Failure& why) override;

 private:
  class ChannelWatch;
  using Watchers = std::map<std::uint64_t, std::function<void()>>;

  void tell(const std::string& channel);
  void leave(const std::string& channel, std::uint64_t id);

  const std::function<void(const Failure&)> forbidden_;
  Subscriber* subscriber_ = nullptr;
  QueueClient* queue_ = nullptr;
  std::unordered_map<std::string, Watchers> watchers_;
  std::uint64_t next_id_ = 1;
};

}  // namespace dlock::redis

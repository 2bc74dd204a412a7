// Messages of the channels that this client subscribes to, and whom they wake: on the client's own channels a waiter of
// the queue, on the channel of a lock those who watch it.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>

#include <dlock/spi/backend.hpp>
#include <dlock/spi/cleanup.hpp>
#include <dlock/spi/executor.hpp>

#include "backends/common/watchers.hpp"
#include "backends/redis/connection/subscriptions.hpp"
#include "backends/redis/requests/acquirer.hpp"
#include "backends/redis/waiting/queue_contention.hpp"
#include "backends/redis/waiting/wakeup_channel.hpp"

namespace dlock::redis {

// In tasks only.
class WakeUps final : public Subscriptions::Listener {
 public:
  // client: this client's part of its values. forbidden: called when the client may not subscribe.
  WakeUps(Servers& servers, Acquirer& acquirer, Cleanup& cleanup, std::string client,
          std::function<void(const Failure&)> forbidden);
  // Before anything else.
  void connect(Subscriptions& subscriptions) { subscriptions_ = &subscriptions; }

  [[nodiscard]] std::unique_ptr<Contention> contend(const LockRequest& request, GrantSink& sink);
  // Calls changed at each message on the channel, and whenever it was subscribed to.
  [[nodiscard]] std::unique_ptr<Watch> watch(const std::string& channel, std::function<void()> changed);

  // The server is usable again: its waiters and all watchers send a request.
  void recovered(const Server& server);
  // One waiter or watcher sends a request, to find out whether that server is usable again.
  void try_one(const Server& server);

  void subscribed(const std::string& channel) override;
  void message(const std::string& channel, const std::string& text) override;
  void lost(const std::string& channel) override;
  void interrupted() override;
  void forbidden(const Failure& why) override;
  // The subscriber's connection was given up, which it does not report.
  void disconnected();

 private:
  friend class QueueContention;
  // The waiters of one server share a channel, which is kept; in a cluster the waiters of a lock do, while there are
  // some.
  struct Channel {
    std::unique_ptr<WakeupChannel> channel;
    std::size_t waiters = 0;
  };

  [[nodiscard]] Executor& executor() const noexcept { return servers_.executor(); }
  [[nodiscard]] WakeupChannel* find(const std::string& channel) const;
  [[nodiscard]] WakeupChannel& join(const OwnerId& owner, QueueContention& waiter);
  void leave(const OwnerId& owner, const std::string& channel);
  void take(std::string_view text);
  template <class F>
  void for_each_waiter(F&& f);
  template <class Which>
  void waiters_recovered(Which&& which);

  Servers& servers_;
  Acquirer& acquirer_;
  Cleanup& cleanup_;
  const std::string client_;
  const std::function<void(const Failure&)> forbidden_;
  Subscriptions* subscriptions_ = nullptr;
  std::unordered_map<OwnerId, QueueContention*> waiters_;
  std::unordered_map<std::string, Channel> channels_;
  common::Watchers watchers_;  // by channel
};

}  // namespace dlock::redis

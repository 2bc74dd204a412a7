// Passes on the messages of the channels that this client subscribes to: on its own channels to a waiter in the queue,
// on the channel of a lock to those who watch it.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <dlock/spi/backend.hpp>
#include <dlock/spi/cleanup.hpp>
#include <dlock/spi/executor.hpp>

#include "backends/common/watchers.hpp"
#include "backends/redis/requests/acquirer.hpp"
#include "backends/redis/waiting/queue_contention.hpp"
#include "backends/redis/waiting/wakeup_channel.hpp"

namespace dlock::redis {

// In tasks only.
class WakeUps {
 public:
  // client: this client's part of its values.
  WakeUps(Topology& topology, Acquirer& acquirer, Cleanup& cleanup, std::string client);
  [[nodiscard]] std::unique_ptr<Contention> contend(const LockRequest& request, GrantSink& sink);
  // Calls changed at each message on the channel, and each time it is subscribed to.
  [[nodiscard]] std::unique_ptr<Watch> watch(const std::string& channel, std::function<void()> changed);

  void on_state(const Node& node, NodeState state);
  void on_subscribed(const std::string& channel);
  void on_message(const std::string& channel, const std::string& text);
  void on_lost(const std::string& channel);
  // This client may not subscribe.
  void on_forbidden();

 private:
  friend class QueueContention;
  // The waiters on one server share a channel, which is kept; in a cluster, the waiters of a lock share one, while
  // there are some.
  struct Channel {
    std::unique_ptr<WakeupChannel> channel;
    std::unordered_map<OwnerId, QueueContention*> waiters;
  };

  [[nodiscard]] Executor& executor() const noexcept { return topology_.executor(); }
  [[nodiscard]] WakeupChannel& join(const OwnerId& owner, QueueContention& waiter);
  void leave(const OwnerId& owner, const std::string& channel);
  void wake(const Channel& channel, std::string_view text);
  void recover_waiters(const std::string& channel);
  template <class F>
  void for_each_waiter(const std::string& channel, F&& f);
  [[nodiscard]] std::vector<std::string> channels_at(const Node& node) const;
  [[nodiscard]] bool recover_one(const Node& node);

  Topology& topology_;
  Acquirer& acquirer_;
  Cleanup& cleanup_;
  const std::string client_;
  std::unordered_map<std::string, std::shared_ptr<Channel>> channels_;
  common::Watchers watchers_;  // by channel
};

}  // namespace dlock::redis

#include "backends/redis/waiting/wake_ups.hpp"

#include <utility>

#include "backends/common/for_each_still_in.hpp"
#include "backends/redis/requests/keys.hpp"

namespace dlock::redis {

WakeUps::WakeUps(Topology& topology, Acquirer& acquirer, Cleanup& cleanup, std::string client)
    : topology_(topology),
      acquirer_(acquirer),
      cleanup_(cleanup),
      client_(std::move(client)),
      watchers_(topology.executor(), [this](const std::string& channel) { topology_.unsubscribe(channel); }) {}

std::unique_ptr<Contention> WakeUps::contend(const LockRequest& request, GrantSink& sink) {
  auto waiter = std::make_unique<QueueContention>(*this, request, sink);
  waiter->start();
  return waiter;
}

std::unique_ptr<Watch> WakeUps::watch(const std::string& channel, std::function<void()> changed) {
  auto watch = watchers_.watch(channel, std::move(changed));
  topology_.subscribe(channel);
  return watch;
}

// --- Waiters and their channels --------------------------------------------------------------------------------------

WakeupChannel& WakeUps::join(const OwnerId& owner, QueueContention& waiter) {
  const std::string name = client_channel(topology_.options(), client_, waiter.lock_key());
  std::shared_ptr<Channel>& entry = channels_[name];
  if (!entry) {
    entry = std::make_shared<Channel>();
    entry->channel = std::make_unique<WakeupChannel>(
        topology_, name, [this, name] { for_each_waiter(name, [](QueueContention& each) { each.on_wake_up(); }); });
  }
  entry->waiters.emplace(owner, &waiter);
  return *entry->channel;
}

void WakeUps::leave(const OwnerId& owner, const std::string& channel) {
  const auto found = channels_.find(channel);
  found->second->waiters.erase(owner);
  if (!found->second->waiters.empty() || !topology_.options().cluster) return;
  topology_.unsubscribe(channel);
  channels_.erase(found);
}

// f may end waiters, and the channel with them, or start new ones.
template <class F>
void WakeUps::for_each_waiter(const std::string& channel, F&& f) {
  const auto found = channels_.find(channel);
  if (found == channels_.end()) return;
  const std::shared_ptr<Channel> kept = found->second;
  common::for_each_still_in(kept->waiters, [&f](const OwnerId&, QueueContention* waiter) { f(*waiter); });
}

void WakeUps::recover_waiters(const std::string& channel) {
  for_each_waiter(channel, [](QueueContention& each) { (void)each.on_recovered(); });
}

// --- Servers ---------------------------------------------------------------------------------------------------------

std::vector<std::string> WakeUps::channels_at(const Node& node) const {
  std::vector<std::string> names;
  for (const auto& [name, entry] : channels_) {
    if (&topology_.node_of(name) == &node) names.push_back(name);
  }
  return names;
}

void WakeUps::on_state(const Node& node, NodeState state) {
  switch (state) {
    case NodeState::connected:  // one request shows whether the server is usable again
      if (!recover_one(node)) watchers_.tell_any();
      return;
    case NodeState::usable:  // the server may have lost its queues
      for (const std::string& name : channels_at(node)) recover_waiters(name);
      for (const auto& [name, entry] : channels_) {
        if (!entry->channel->reachable()) entry->channel->probe();
      }
      return watchers_.tell_all();
    case NodeState::down:
      for (const std::string& name : node.subscriber().channels()) {
        if (const auto found = channels_.find(name); found != channels_.end()) found->second->channel->on_lost();
      }
  }
}

bool WakeUps::recover_one(const Node& node) {
  for (const std::string& name : channels_at(node)) {
    for (const auto& [owner, waiter] : channels_.at(name)->waiters) {
      if (waiter->on_recovered()) return true;
    }
  }
  return false;
}

// --- Channels --------------------------------------------------------------------------------------------------------

void WakeUps::on_message(const std::string& channel, const std::string& text) {
  const auto found = channels_.find(channel);
  const bool probe = found != channels_.end() && text.empty();
  if (probe) return;
  topology_.proven(channel);
  found == channels_.end() ? watchers_.tell_all(channel) : wake(*found->second, text);
}

// Messages that are not dlock's are ignored.
void WakeUps::wake(const Channel& channel, std::string_view text) {
  const auto message = wake_up_in(text, client_);
  if (!message) return;
  const auto found = channel.waiters.find(message->owner);
  if (found == channel.waiters.end()) {
    if (!message->free_in) cleanup_.granted_late(message->owner);
  } else if (message->free_in) {
    found->second->on_watch(*message->free_in);
  } else {
    found->second->on_wake_up();
  }
}

void WakeUps::on_subscribed(const std::string& channel) {
  const auto found = channels_.find(channel);
  if (found == channels_.end()) return watchers_.tell_all(channel);
  found->second->channel->on_subscribed();
}

// A watcher sends a request when the channel is subscribed to again.
void WakeUps::on_lost(const std::string& channel) {
  const auto found = channels_.find(channel);
  if (found == channels_.end()) return;
  found->second->channel->on_lost();
  recover_waiters(channel);
}

void WakeUps::on_forbidden() {
  for (const auto& [name, entry] : channels_) entry->channel->on_forbidden();
}

}  // namespace dlock::redis

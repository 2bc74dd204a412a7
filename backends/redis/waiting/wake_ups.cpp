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
  waiters_.emplace(owner, &waiter);
  const std::string name = client_channel(topology_.options(), client_, waiter.lock_key());
  Channel& entry = channels_[name];
  ++entry.waiters;
  if (!entry.channel) {
    entry.channel = std::make_unique<WakeupChannel>(topology_, name, [this, name] {
      for_each_waiter([&](QueueContention& each) {
        if (each.channel().name() == name) each.on_wake_up();
      });
    });
  }
  return *entry.channel;
}

void WakeUps::leave(const OwnerId& owner, const std::string& channel) {
  waiters_.erase(owner);
  const auto found = channels_.find(channel);
  if (--found->second.waiters > 0 || !topology_.options().cluster) return;
  topology_.unsubscribe(channel);
  channels_.erase(found);
}

WakeupChannel* WakeUps::find(const std::string& channel) const {
  const auto found = channels_.find(channel);
  return found == channels_.end() ? nullptr : found->second.channel.get();
}

// Each may end waiters, and others may come.
template <class F>
void WakeUps::for_each_waiter(F&& f) {
  common::for_each_still_in(waiters_, [&f](const OwnerId&, QueueContention* waiter) { f(*waiter); });
}

// --- Servers ---------------------------------------------------------------------------------------------------------

void WakeUps::on_state(const Node& node, NodeState state) {
  switch (state) {
    case NodeState::connected:
      return try_one(node);
    case NodeState::usable:
      return recovered(node);
    case NodeState::down:  // and its subscriber with it, without a word
      for (const auto& [name, entry] : channels_) {
        if (&topology_.node_of(name) == &node) entry.channel->on_lost();
      }
  }
}

// The server may have forgotten who waits.
void WakeUps::recovered(const Node& node) {
  for_each_waiter([&](QueueContention& each) {
    if (&topology_.node_of(each.lock_key()) == &node) (void)each.on_recovered();
  });
  for (const auto& [name, entry] : channels_) {
    if (!entry.channel->reachable()) entry.channel->probe();
  }
  watchers_.tell_all();
}

// One of them finds out whether the server is usable again.
void WakeUps::try_one(const Node& node) {
  for (const auto& [owner, waiter] : waiters_) {
    if (&topology_.node_of(waiter->lock_key()) == &node && waiter->on_recovered()) return;
  }
  watchers_.tell_any();
}

// --- Messages --------------------------------------------------------------------------------------------------------

void WakeUps::on_message(const std::string& channel, const std::string& text) {
  const bool ours = find(channel) != nullptr;
  if (ours && text.empty()) return;  // a probe of ours
  topology_.proven(channel);
  ours ? take(text) : watchers_.tell_all(channel);
}

// Messages on our channel that are not dlock's are ignored.
void WakeUps::take(std::string_view text) {
  const auto message = wake_up_in(text, client_);
  if (!message) return;
  const auto found = waiters_.find(message->owner);
  if (found == waiters_.end()) {
    if (!message->free_in) cleanup_.granted_late(message->owner);
  } else if (message->free_in) {
    found->second->on_watch(*message->free_in);
  } else {
    found->second->on_wake_up();
  }
}

void WakeUps::on_subscribed(const std::string& channel) {
  if (WakeupChannel* const ours = find(channel)) return ours->on_subscribed();
  watchers_.tell_all(channel);
}

// Watchers send a request when the channel is subscribed to again.
void WakeUps::on_lost(const std::string& channel) {
  WakeupChannel* const ours = find(channel);
  if (ours == nullptr) return;
  ours->on_lost();
  for_each_waiter([&](QueueContention& each) {
    if (each.channel().name() == channel) (void)each.on_recovered();
  });
}

void WakeUps::on_forbidden() {
  for (const auto& [name, entry] : channels_) entry.channel->on_forbidden();
}

}  // namespace dlock::redis

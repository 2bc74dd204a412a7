#include "backends/redis/waiting/wake_ups.hpp"

#include <utility>

#include "backends/common/for_each_still_in.hpp"
#include "backends/redis/requests/keys.hpp"

namespace dlock::redis {

WakeUps::WakeUps(Servers& servers, Acquirer& acquirer, Cleanup& cleanup, std::string client,
                 std::function<void(const Failure&)> forbidden)
    : servers_(servers),
      acquirer_(acquirer),
      cleanup_(cleanup),
      client_(std::move(client)),
      forbidden_(std::move(forbidden)),
      watchers_(servers.executor(), [this](const std::string& channel) { subscriptions_->unsubscribe(channel); }) {}

std::unique_ptr<Contention> WakeUps::contend(const LockRequest& request, GrantSink& sink) {
  auto waiter = std::make_unique<QueueContention>(*this, request, sink);
  waiter->start();
  return waiter;
}

std::unique_ptr<Watch> WakeUps::watch(const std::string& channel, std::function<void()> changed) {
  auto watch = watchers_.watch(channel, std::move(changed));
  subscriptions_->subscribe(channel);
  return watch;
}

// --- Waiters and their channels --------------------------------------------------------------------------------------

WakeupChannel& WakeUps::join(const OwnerId& owner, QueueContention& waiter) {
  waiters_.emplace(owner, &waiter);
  const std::string name = client_channel(servers_.options(), client_, waiter.lock_key());
  Channel& entry = channels_[name];
  ++entry.waiters;
  if (!entry.channel) {
    entry.channel = std::make_unique<WakeupChannel>(servers_, *subscriptions_, name, [this, name] {
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
  if (--found->second.waiters > 0 || !servers_.are_a_cluster()) return;
  subscriptions_->unsubscribe(channel);
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

template <class Which>
void WakeUps::waiters_recovered(Which&& which) {
  for_each_waiter([&](QueueContention& each) {
    if (which(each)) (void)each.on_recovered();
  });
  for (const auto& [name, entry] : channels_) {
    if (!entry.channel->reachable()) entry.channel->probe();
  }
}

void WakeUps::recovered(const Server& server) {
  waiters_recovered([&](const QueueContention& each) { return &servers_.of(each.lock_key()) == &server; });
  watchers_.tell_all();
}

void WakeUps::try_one(const Server& server) {
  for (const auto& [owner, waiter] : waiters_) {
    if (&servers_.of(waiter->lock_key()) == &server && waiter->on_recovered()) return;
  }
  watchers_.tell_any();
}

// --- Messages --------------------------------------------------------------------------------------------------------

void WakeUps::message(const std::string& channel, const std::string& text) {
  const bool ours = find(channel) != nullptr;
  if (ours && text.empty()) return;  // a probe of ours
  subscriptions_->proven(channel);
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

void WakeUps::subscribed(const std::string& channel) {
  if (WakeupChannel* const ours = find(channel)) return ours->on_subscribed();
  watchers_.tell_all(channel);
}

// Watchers send a request when the channel is subscribed to again.
void WakeUps::lost(const std::string& channel) {
  WakeupChannel* const ours = find(channel);
  if (ours == nullptr) return;
  ours->on_lost();
  for_each_waiter([&](QueueContention& each) {
    if (each.channel().name() == channel) (void)each.on_recovered();
  });
}

void WakeUps::interrupted() {
  disconnected();
  waiters_recovered([](const QueueContention&) { return true; });
}

void WakeUps::disconnected() {
  for (const auto& [name, entry] : channels_) entry.channel->on_lost();
}

void WakeUps::forbidden(const Failure& why) {
  for (const auto& [name, entry] : channels_) entry.channel->on_forbidden();
  forbidden_(why);
}

}  // namespace dlock::redis

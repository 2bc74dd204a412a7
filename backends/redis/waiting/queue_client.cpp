#include "backends/redis/waiting/queue_client.hpp"

#include <utility>

#include "backends/common/for_each_still_in.hpp"
#include "backends/redis/requests/keys.hpp"
#include "backends/redis/requests/scripts.hpp"
#include "backends/redis/timing.hpp"

namespace dlock::redis {

// --- QueueClient -----------------------------------------------------------------------------------------------------

QueueClient::QueueClient(Servers& servers, Acquirer& acquirer, Cleanup& cleanup, Subscriptions& subscriptions,
                         std::string client)
    : servers_(servers),
      executor_(servers.executor()),
      acquirer_(acquirer),
      cleanup_(cleanup),
      subscriptions_(subscriptions),
      client_(std::move(client)) {}

std::unique_ptr<Contention> QueueClient::contend(const LockRequest& request, GrantSink& sink) {
  auto contention = std::make_unique<QueueContention>(*this, request, sink);
  waiting_.emplace(request.owner, contention.get());
  contention->start();
  return contention;
}

// Messages in our channel that are not dlock's are ignored.
void QueueClient::told(std::string_view text) {
  const auto message = wake_up_in(text, client_);
  if (!message) return;
  auto* contention = find(message->owner);
  if (message->free_in) {
    if (contention != nullptr) contention->watch(*message->free_in);
  } else if (contention != nullptr) {
    contention->news();
  } else {
    cleanup_.granted_late(message->owner);
  }
}

void QueueClient::recovered(const Server* server) {
  for_each([&](QueueContention& contention) {
    if (server == nullptr || &servers_.of(contention.lock_key()) == server) (void)contention.recovered();
  });
  for (const auto& [name, channel] : channels_) {
    if (!channel.hearing->heard()) channel.hearing->check();
  }
}

bool QueueClient::look(const Server& server) {
  for (const auto& [owner, contention] : waiting_) {
    if (&servers_.of(contention->lock_key()) == &server && contention->recovered()) return true;
  }
  return false;
}

// Contentions come and go while they are told something.
template <class F>
void QueueClient::for_each(F&& f) {
  common::for_each_still_in(waiting_, [&f](const OwnerId&, QueueContention* contention) { f(*contention); });
}

QueueContention* QueueClient::find(const OwnerId& owner) const {
  const auto found = waiting_.find(owner);
  return found == waiting_.end() ? nullptr : found->second;
}

// --- Channels --------------------------------------------------------------------------------------------------------

Hearing& QueueClient::join(const std::string& lock_key) {
  const std::string name = client_channel(servers_.options(), client_, lock_key);
  Channel& channel = channels_[name];
  ++channel.waiters;
  if (!channel.hearing) {
    channel.hearing = std::make_unique<Hearing>(servers_, subscriptions_, name, [this, name] {
      for_each([&](QueueContention& contention) {
        if (contention.hearing().channel() == name) contention.news();
      });
    });
  }
  return *channel.hearing;
}

void QueueClient::leave(const std::string& channel) {
  const auto found = channels_.find(channel);
  if (--found->second.waiters > 0 || !servers_.are_a_cluster()) return;
  subscriptions_.unsubscribe(channel);
  channels_.erase(found);
}

bool QueueClient::subscribed(const std::string& channel) {
  const auto found = channels_.find(channel);
  if (found == channels_.end()) return false;
  found->second.hearing->subscribed();
  return true;
}

void QueueClient::lost(const std::string& channel) {
  const auto found = channels_.find(channel);
  if (found == channels_.end()) return;
  found->second.hearing->unsubscribed();
  for_each([&](QueueContention& contention) {
    if (contention.hearing().channel() == channel) (void)contention.recovered();
  });
}

void QueueClient::unsubscribed() {
  for (const auto& [name, channel] : channels_) channel.hearing->unsubscribed();
}

// --- QueueContention -------------------------------------------------------------------------------------------------

QueueContention::QueueContention(QueueClient& client, const LockRequest& request, GrantSink& sink)
    : client_(client),
      request_(request),
      lock_key_(redis::lock_key(client.servers_.options(), request.name, request.kind)),
      hearing_(client.join(lock_key_)),
      sink_(sink),
      machine_([&executor = client.executor_] { return executor.random(); },
               client.servers_.options().prefix.empty() && !several_hold(request.kind)),
      timer_(client.executor_) {}

QueueContention::~QueueContention() {
  client_.waiting_.erase(request_.owner);
  client_.leave(hearing_.channel());
  if (granted_) return;  // the core's business now
  const bool in_flight = machine_.asking() && !client_.acquirer_.withdraw(question_);
  if (!in_flight && !machine_.maybe_known()) return;
  client_.cleanup_.abandon(request_, machine_.unanswered());
}

void QueueContention::follow(QueueMachine::Step step, const Failure& why, const AcquireAnswer& answer, TimePoint sent) {
  using Report = QueueMachine::Report;
  if (over_) return;
  over_ = granted_ = step.report == Report::granted;
  if (step.report == Report::failed) over_ = true;
  if (over_) {
    timer_.disarm();
    client_.waiting_.erase(request_.owner);
  }
  if (step.ask) {
    timer_.disarm();
    ask();
  }
  if (step.wake) timer_.arm(*step.wake, [this] { follow(machine_.timer()); });
  // Last: a report may lead to anything but our destruction.
  switch (step.report) {
    case Report::none:
      return;
    case Report::granted: {
      if (machine_.unanswered()) client_.cleanup_.in_doubt(request_.owner, alive_for);
      const TimePoint valid_until = lease_valid_until(sent, request_.lease);
      return sink_.granted(
          {request_.name, request_.owner, answer.token, valid_until, request_.lease, request_.kind, request_.mode});
    }
    case Report::busy:
      return sink_.busy();
    case Report::unreachable:
      return sink_.unreachable(why);
    case Report::failed:
      return sink_.failed(why);
  }
}

void QueueContention::ask() {
  asked_in_ = hearing_.subscription();
  claimed_ = ticket_ > 0 && subscription_ != asked_in_ && client_.executor_.now() < ticket_until_;
  const Place place = {.mode = hearing_.heard() ? AcquireMode::queue : AcquireMode::blind,
                       .ticket = claimed_ ? ticket_ : 0};
  question_ = client_.acquirer_.start(
      request_, place, client_.servers_.answer_by(),
      [&client = client_, owner = request_.owner](Result<AcquireAnswer> answer, TimePoint sent) {
        if (auto* contention = client.find(owner)) contention->answered(std::move(answer), sent);
      });
}

void QueueContention::news() {
  overlooked_ = false;
  follow(machine_.news());
}

void QueueContention::watch(std::chrono::nanoseconds free_in) {
  overlooked_ = false;
  follow(machine_.watch(free_in, client_.executor_.now()));
}

bool QueueContention::recovered() {
  const QueueMachine::Step step = machine_.recovered();
  follow(step);
  return step.ask;
}

void QueueContention::answered(Result<AcquireAnswer> answer, TimePoint sent) {
  const TimePoint now = client_.executor_.now();
  if (!answer.ok()) return follow(machine_.failed(answer.failure(), now), answer.failure());
  if (!answer.value().granted) client_.subscriptions_.subscribe(hearing_.channel());
  // We lost our place: perhaps we do not hear where others publish, or those that release the lock may not publish.
  if (answer.value().joined && machine_.maybe_known()) {
    if (ticket_ > 0 && !claimed_) overlooked_ = true;
    hearing_.check();
  }
  ticket_ = answer.value().ticket;
  ticket_until_ = saturating_add(sent, alive_for);
  subscription_ = asked_in_;
  const bool heard = hearing_.heard() && !overlooked_;
  follow(machine_.answered(answer.value(), heard, now), {}, answer.value(), sent);
}

}  // namespace dlock::redis

// The client's side of the queue: its waiters, and who of them an answer or a wake-up is for.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>

#include <dlock/backend.hpp>
#include <dlock/backoff.hpp>
#include <dlock/executor.hpp>

#include "backends/redis/connection/subscriber.hpp"
#include "backends/redis/requests/acquirer.hpp"
#include "backends/redis/requests/release_request.hpp"
#include "backends/redis/waiting/queue_machine.hpp"

namespace dlock::redis {

class QueueContention;

// In tasks only.
class QueueClient {
 public:
  QueueClient(Executor& executor, Acquirer& acquirer, ReleasesOfKinds& releases, Subscriber& subscriber,
              std::string client);

  [[nodiscard]] std::unique_ptr<Contention> contend(const LockRequest& request, GrantSink& sink);

  // Our channel said: one of our waiters was given its lock, or is to watch the holder.
  void told(std::string_view text);
  // Our channel is subscribed to from now on.
  void subscribed();
  // It is not any more.
  void unsubscribed();
  // Something was broken, or is whole again: all waiters look for themselves.
  void recovered();
  // One waiter looks, to find out whether something is whole again. False: there is none that is not asking already.
  bool look();

  [[nodiscard]] const std::string& channel() const noexcept { return channel_; }

 private:
  friend class QueueContention;
  [[nodiscard]] QueueContention* find(const OwnerId& owner) const;
  [[nodiscard]] bool heard() const { return heard_ && subscriber_.hears(channel_); }
  void check_subscription();
  void checked(const Result<Reply>& reply);
  template <class F>
  void for_each(F&& f);

  Executor& executor_;
  Acquirer& acquirer_;
  ReleasesOfKinds& releases_;
  Subscriber& subscriber_;
  const std::string client_;
  const std::string channel_;
  std::unordered_map<OwnerId, QueueContention*> waiting_;

  // A waiter that counts as heard, and whose channel has no subscriber, counts as dead. So we are heard only when the
  // server that our questions go to has counted us, which may be another one than the subscriber's: after a failover,
  // where the name leads to several servers, or through a proxy.
  bool heard_ = false;
  std::uint64_t subscription_ = 0;  // of how many, so that an answer about an earlier one is known
  bool checking_ = false;
  int failed_checks_ = 0;  // in a row
  Backoff check_backoff_{std::chrono::seconds(5)};
  Timer check_timer_;
};

// One waiter. Carries out what the machine decides.
class QueueContention final : public Contention {
 public:
  QueueContention(QueueClient& client, const LockRequest& request, GrantSink& sink);
  ~QueueContention() override;

  void start() { follow(machine_.start()); }
  void news();
  void watch(std::chrono::nanoseconds free_in);
  // Whether it asks therefore.
  bool recovered();

 private:
  void follow(QueueMachine::Step step, const Failure& why = {}, const AcquireAnswer& answer = {}, TimePoint sent = {});
  void ask();
  void answered(Result<AcquireAnswer> answer, TimePoint sent);

  QueueClient& client_;
  const LockRequest request_;
  GrantSink& sink_;
  QueueMachine machine_;
  CommandClient::RequestId question_ = 0;
  // Our place in the queue, until when we may claim it, and while which subscription it was ours. A release takes a
  // client whose subscription was cut for dead, so that its waiters lose their places.
  std::uint64_t ticket_ = 0;
  TimePoint ticket_until_;
  std::uint64_t subscription_ = 0;
  std::uint64_t asked_in_ = 0;  // while which the question under way was asked
  bool claimed_ = false;        // by the question under way
  bool overlooked_ = false;     // we lost our place though we are heard: whoever releases the lock does not tell us
  bool over_ = false;           // reported for good
  bool granted_ = false;
  Timer timer_;
};

}  // namespace dlock::redis

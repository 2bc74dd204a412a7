// The client's side of the queue: its waiters, and who of them an answer or a wake-up is for.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>

#include <dlock/spi/backend.hpp>
#include <dlock/spi/executor.hpp>

#include "backends/redis/connection/subscriptions.hpp"
#include "backends/redis/requests/acquirer.hpp"
#include "backends/redis/requests/release_request.hpp"
#include "backends/redis/waiting/hearing.hpp"
#include "backends/redis/waiting/queue_machine.hpp"

namespace dlock::redis {

class QueueContention;

// In tasks only.
class QueueClient {
 public:
  QueueClient(Servers& servers, Acquirer& acquirer, Cleanup& cleanup, Subscriptions& subscriptions, std::string client);

  [[nodiscard]] std::unique_ptr<Contention> contend(const LockRequest& request, GrantSink& sink);

  // One of our channels said: one of our waiters was given its lock, or is to watch the holder.
  void told(std::string_view text);
  [[nodiscard]] bool listens_to(const std::string& channel) const { return channels_.contains(channel); }
  // It is subscribed to from now on. False: it is none of ours.
  bool subscribed(const std::string& channel);
  // It is not any more, so each waiter looks for itself.
  void lost(const std::string& channel);
  // None of them is.
  void unsubscribed();
  // Something was broken, or is whole again: all waiters look for themselves; of a server, if one is given.
  void recovered(const Server* server = nullptr);
  // One waiter looks, to find out whether that server is whole again. False: there is none that is not asking already.
  bool look(const Server& server);

 private:
  friend class QueueContention;
  // One server's waiters share a channel, which is kept; on a cluster those of a lock do, as long as there are some.
  struct Channel {
    std::unique_ptr<Hearing> hearing;
    std::size_t waiters = 0;
  };

  [[nodiscard]] QueueContention* find(const OwnerId& owner) const;
  [[nodiscard]] Hearing& join(const std::string& lock_key);
  void leave(const std::string& channel);
  template <class F>
  void for_each(F&& f);

  Servers& servers_;
  Executor& executor_;
  Acquirer& acquirer_;
  Cleanup& cleanup_;
  Subscriptions& subscriptions_;
  const std::string client_;
  std::unordered_map<OwnerId, QueueContention*> waiting_;
  std::unordered_map<std::string, Channel> channels_;
};

// One waiter. Carries out what the machine decides.
class QueueContention final : public Contention {
 public:
  QueueContention(QueueClient& client, const LockRequest& request, GrantSink& sink);
  ~QueueContention() override;

  void start() { follow(machine_.start()); }
  [[nodiscard]] const std::string& lock_key() const noexcept { return lock_key_; }
  [[nodiscard]] const Hearing& hearing() const noexcept { return hearing_; }
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
  const std::string lock_key_;
  Hearing& hearing_;
  GrantSink& sink_;
  QueueMachine machine_;
  std::uint64_t question_ = 0;
  // Our place in the queue, until when we may claim it, and while which subscription it was ours. A release takes a
  // client whose subscription was cut for dead, so that its waiters lose their places.
  std::uint64_t ticket_ = 0;
  TimePoint ticket_until_;
  std::uint64_t subscription_ = 0;
  std::uint64_t asked_in_ = 0;  // while which the question under way was asked
  bool claimed_ = false;        // by the question under way
  bool overlooked_ = false;     // we lost our place though we are heard: releases do not tell us
  bool over_ = false;           // reported for good
  bool granted_ = false;
  Timer timer_;
};

}  // namespace dlock::redis

// One waiter in the server's queue.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include <dlock/spi/waiter.hpp>

#include "backends/redis/requests/answers.hpp"
#include "backends/redis/waiting/wakeup_channel.hpp"

namespace dlock::redis {

class WakeUps;

// In tasks only.
class QueueContention final : public Waiter {
 public:
  QueueContention(WakeUps& wake_ups, const LockRequest& request, GrantSink& sink);
  ~QueueContention() override { cancel(); }

  [[nodiscard]] const std::string& lock_key() const noexcept { return lock_key_; }
  [[nodiscard]] const WakeupChannel& channel() const noexcept { return channel_; }

  // The server granted it the lock, or its channel became reachable.
  void on_wake_up();
  // The server assigned it to check when the holder's lease ends.
  void on_watch(std::chrono::nanoseconds free_in);
  // The server or the connection is usable again: unless a request is in flight, sends the next one and returns true.
  bool on_recovered();

 private:
  void resume() override;
  void entered(Stage stage) override;
  void give_up() override;
  void answered(const Result<AcquireAnswer>& result, TimePoint sent);

  WakeUps& wake_ups_;
  const std::string lock_key_;
  WakeupChannel& channel_;
  // The request in flight.
  bool in_flight_ = false;
  std::uint64_t request_id_ = 0;
  std::uint64_t subscription_of_request_ = 0;
  bool claims_ticket_ = false;
  TimePoint holder_expires_ = TimePoint::max();  // from on_watch() during the request

  // The place in the queue, until when it may be claimed, and the subscription during which it was assigned. A release
  // discards the waiters of a client whose subscription was cut, so that they lose their places.
  std::uint64_t ticket_ = 0;
  TimePoint ticket_until_;
  std::uint64_t subscription_of_ticket_ = 0;

  TimePoint check_at_;           // while waiting
  bool watches_holder_ = false;  // the server assigned this waiter to
  bool overlooked_ = false;      // it lost its place although its channel is reachable: releases do not wake it
  bool maybe_known_ = false;     // the server may have this owner in its queue, or even hold the lock for it
  bool unanswered_ = false;      // a request was not answered, and may be carried out even after later ones
};

}  // namespace dlock::redis

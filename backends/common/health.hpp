// Whether the peer is still there: after a silent period the connection is probed, and after another one it counts as
// dead.
#pragma once

#include <algorithm>
#include <chrono>
#include <optional>

#include <dlock/duration.hpp>
#include <dlock/spi/executor.hpp>

namespace dlock::common {

// In tasks only.
class Health {
 public:
  class User {
   public:
    User() = default;
    User(const User&) = delete;
    User& operator=(const User&) = delete;
    // Nothing was heard for a while: ask something, unless an answer is due anyway.
    virtual void health_ask() = 0;
    // Take in what has arrived already: perhaps it is we who were asleep. May end the connection, with stop().
    virtual void health_catch_up() = 0;
    // The peer is gone.
    virtual void health_dead() = 0;

   protected:
    ~User() = default;
  };

  // response_timeout: what the connection is used for is not patient for longer. The silence after which something is
  // asked is at most that, within 50 ms and 2 s.
  Health(Executor& executor, std::chrono::nanoseconds response_timeout, User& user)
      : executor_(executor),
        user_(user),
        silence_(std::clamp<std::chrono::nanoseconds>(response_timeout, shortest, longest)),
        timer_(executor) {}

  // A connection stands.
  void start() {
    heard();
    look_at(saturating_add(last_heard_, silence_));
  }
  // It is gone.
  void stop() { timer_.disarm(); }
  // Something arrived.
  void heard() {
    last_heard_ = executor_.now();
    asked_.reset();
  }

 private:
  static constexpr std::chrono::milliseconds shortest{50};
  static constexpr std::chrono::seconds longest{2};

  void look_at(TimePoint at) {
    timer_.arm(at, [this] { look(); });
  }

  void look() {
    if (asked_ && executor_.now() >= saturating_add(*asked_, silence_)) {
      look_at(saturating_add(executor_.now(), silence_));
      user_.health_catch_up();
      if (!timer_.armed()) return;
      if (asked_) {
        timer_.disarm();
        return user_.health_dead();
      }
    }
    const TimePoint now = executor_.now();
    if (!asked_ && now >= saturating_add(last_heard_, silence_)) {
      asked_ = now;
      look_at(saturating_add(now, silence_));
      return user_.health_ask();
    }
    look_at(saturating_add(asked_.value_or(last_heard_), silence_));
  }

  Executor& executor_;
  User& user_;
  const std::chrono::nanoseconds silence_;
  TimePoint last_heard_;
  std::optional<TimePoint> asked_;
  Timer timer_;
};

}  // namespace dlock::common

// Detects a dead peer: probes the connection after a period of silence, and gives it up after a second one.
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
    // Nothing arrived for a period: send a request, unless an answer is due anyway.
    virtual void health_ask() = 0;
    // Read what has arrived: this process may have been suspended. May end the connection, with stop().
    virtual void health_catch_up() = 0;
    // The peer did not answer.
    virtual void health_dead() = 0;

   protected:
    ~User() = default;
  };

  // A period is the response timeout, but at least 50 ms and at most 2 s.
  Health(Executor& executor, std::chrono::nanoseconds response_timeout, User& user)
      : executor_(executor),
        user_(user),
        silence_(std::clamp<std::chrono::nanoseconds>(response_timeout, shortest, longest)),
        timer_(executor) {}

  // A connection was made.
  void start() {
    heard();
    look_at(saturating_add(last_heard_, silence_));
  }
  // The connection has ended.
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

// A connection that is made when it is first wanted and made again when it breaks: back-off, handshake, health.
//
//   idle ----want()----> connecting --opened--> greeting --handshake done--> ready
//    ^                        |                     |                          |
//    +--- final refusal ------+------ failed -------+------- broken -----------+--> pausing --timer, want()-->
//    connecting
//
// A connection that breaks soon after it was made is no better than one that could not be made: the pauses grow.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <dlock/backoff.hpp>
#include <dlock/executor.hpp>

#include "backends/redis/handshake.hpp"
#include "backends/redis/options.hpp"
#include "backends/redis/wire.hpp"

namespace dlock::redis {

// Appends the command as Redis reads it.
void append_command(std::string& out, const std::vector<std::string_view>& words);

// In tasks only.
class Link final : private Wire::Events {
 public:
  class User {
   public:
    User() = default;
    User(const User&) = delete;
    User& operator=(const User&) = delete;
    virtual void link_ready() = 0;
    virtual void link_received(Reply reply) = 0;
    virtual void link_drained() = 0;
    // The connection broke, or could not be made. sent(): how much of what was written may have reached the server.
    virtual void link_down(const Failure& why, bool was_ready) = 0;
    // Nothing was heard for a while: ask something, so that a dead connection is noticed.
    virtual void link_silent() = 0;

   protected:
    ~User() = default;
  };

  Link(Executor& executor, const Options& options, WireFactory wires, User& user);
  ~Link();

  // Connects, unless it is connected; sooner than planned where it is pausing.
  void want();
  [[nodiscard]] bool ready() const noexcept { return state_ == State::ready; }
  // While nothing works: why.
  [[nodiscard]] const Failure& problem() const noexcept { return problem_; }

  // Only while ready. What is written goes out with flush().
  void write(std::string_view bytes);
  void flush() { wire_->flush(); }
  void receive() { wire_->receive(); }
  // Counted from the beginning of the current connection.
  [[nodiscard]] std::uint64_t written() const noexcept { return written_; }
  [[nodiscard]] std::uint64_t sent() const noexcept { return wire_ ? wire_->sent() : sent_; }

  // This connection is of use: if it breaks, the next one is made without a pause.
  void proven() noexcept { proven_ = true; }

  // Something is wrong with this connection: give it up and make another.
  void break_off(Failure why);
  // Give up the connection, if any, and make another when it is wanted, at once then. link_down() is not called.
  void rest();
  // For good.
  void stop();

 private:
  enum class State { idle, connecting, greeting, ready, pausing, stopped };

  void connect();
  void pause_until(TimePoint at);
  void pause_until_wanted();  // and not at once
  [[nodiscard]] bool good() const;
  void down(Failure why);
  void watch_health();
  void check_health();

  void opened() override;
  void received(Reply reply) override;
  void drained() override;
  void closed(Failure why) override;

  Executor& executor_;
  const Options& options_;
  const WireFactory wires_;
  User& user_;

  State state_ = State::idle;
  std::unique_ptr<Wire> wire_;
  std::optional<Handshake> handshake_;
  TimePoint ready_since_;
  bool proven_ = false;
  std::uint64_t written_ = 0;
  std::uint64_t sent_ = 0;  // of the last connection, once it is gone
  Failure problem_;
  Backoff backoff_{std::chrono::seconds(1)};
  TimePoint last_attempt_;
  TimePoint next_attempt_;
  Timer timer_;  // of the connecting, or of the pause

  const std::chrono::nanoseconds silence_;  // as long as this, and we ask whether somebody is there
  TimePoint last_heard_;
  std::optional<TimePoint> asked_;
  Timer health_timer_;
};

}  // namespace dlock::redis

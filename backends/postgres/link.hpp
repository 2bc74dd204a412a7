// A connection that is made when it is first wanted and made again when it breaks.
//
//   idle --want()--> connecting --> ready
//                     ^     |         |
//                     |     v         v
//                     +--- pausing <--+          a link that is made once: over, instead of pausing
//
// After a final refusal (a password, a database that does not exist) it pauses until somebody wants it again. Where the
// server is full, a client that makes room for others pauses for long, and may rest(): then it is idle again.
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include <dlock/backoff.hpp>
#include <dlock/executor.hpp>

#include "backends/postgres/connection.hpp"
#include "backends/postgres/full_server.hpp"

namespace dlock::postgres {

// How connections are made, and how long anything may take. What it refers to outlives its users.
struct Dialling {
  const Options& options;
  ConnectionFactory connections;
  std::chrono::nanoseconds connect_timeout{};
  std::chrono::nanoseconds response_timeout{};
  FullServer* full = nullptr;  // what this client knows about that; nullptr: it takes no notice
};

enum class Upkeep {
  kept_up,  // there is always to be one
  once,     // what it was good for is gone with it
};

// In tasks only.
class Link final : private Connection::Listener {
 public:
  // None of them is called inside a call to the link but receive() and break_off(). Any may destroy it.
  class User {
   public:
    User() = default;
    User(const User&) = delete;
    User& operator=(const User&) = delete;
    virtual void link_ready() = 0;
    // It broke, or could not be made. What was under way on it has been answered.
    virtual void link_down(const Failure& why, bool was_ready) = 0;
    virtual void link_notified(const std::string& channel, const std::string& payload) = 0;

   protected:
    ~User() = default;
  };

  Link(Executor& executor, const Dialling& dialling, Purpose purpose, Upkeep upkeep, User& user);

  // Connects, unless it is connected; sooner than planned where it is pausing. patient: not sooner than a client that
  // makes room for others does.
  void want(bool patient = false);
  [[nodiscard]] bool ready() const noexcept { return state_ == State::ready && connection_->usable(); }
  [[nodiscard]] bool over() const noexcept { return state_ == State::over; }
  // Only while ready().
  [[nodiscard]] Connection& connection() noexcept { return *connection_; }
  // Of the last connection that stood.
  [[nodiscard]] const ServerInfo& server() const noexcept { return server_; }
  // While nothing works: why.
  [[nodiscard]] const Failure& problem() const noexcept { return problem_; }
  [[nodiscard]] const Purpose& purpose() const noexcept { return purpose_; }

  // This client makes room for others, and the server had no room for this connection at first.
  [[nodiscard]] bool may_rest() const;
  // Closes the connection without another word. Not inside a call of it.
  void rest();

  // Something is wrong with this connection: give it up.
  void break_off(const Failure& why);
  // For good, and without another word.
  void stop();

 private:
  enum class State { idle, connecting, ready, pausing, over };

  void connect();
  void pause_until(TimePoint at);
  [[nodiscard]] bool keeps_away() const;
  [[nodiscard]] TimePoint next_attempt_after(bool refused_as_full);

  void connection_ready() override;
  void connection_lost(const Failure& why) override;
  void connection_notified(const std::string& channel, const std::string& payload) override;

  Executor& executor_;
  const Dialling& dialling_;
  const Purpose purpose_;
  const Upkeep upkeep_;
  User& user_;

  State state_ = State::idle;
  std::unique_ptr<Connection> connection_;
  ServerInfo server_;
  Failure problem_;
  Backoff backoff_{std::chrono::seconds(1)};
  Backoff urgent_backoff_{std::chrono::milliseconds(250)};  // of a client that holds locks, at a full server
  bool was_refused_as_full_ = false;
  TimePoint ready_since_;
  TimePoint last_attempt_;
  TimePoint next_attempt_;
  Timer timer_;  // of the pause
};

}  // namespace dlock::postgres

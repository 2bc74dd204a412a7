// A connection that is made when it is first wanted and made again when it breaks (common::Reconnect), unless it is to
// be made only once. Where the server is full, a client that makes room for others pauses for long, and may rest().
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include <dlock/spi/backoff.hpp>
#include <dlock/spi/executor.hpp>

#include "backends/common/reconnect.hpp"
#include "backends/postgres/sessions/full_server.hpp"
#include "backends/postgres/sql/connection.hpp"

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
  [[nodiscard]] bool ready() const noexcept { return reconnect_.is_ready() && connection_->usable(); }
  [[nodiscard]] bool over() const noexcept { return reconnect_.is_over(); }
  // Only while ready().
  [[nodiscard]] Connection& connection() noexcept { return *connection_; }
  // Of the last connection that stood.
  [[nodiscard]] const ServerInfo& server() const noexcept { return server_; }
  // While nothing works: why.
  [[nodiscard]] const Failure& problem() const noexcept { return reconnect_.problem(); }
  [[nodiscard]] const Purpose& purpose() const noexcept { return purpose_; }

  // A request about locks was answered on this connection.
  void answered() noexcept { reconnect_.answered(); }
  [[nodiscard]] bool is_answered() const noexcept { return reconnect_.is_answered(); }

  // This client makes room for others, and the server had no room for this connection at first.
  [[nodiscard]] bool may_rest() const;
  // Closes the connection without another word. Not inside a call of it.
  void rest();

  // Something is wrong with this connection: give it up.
  void break_off(const Failure& why);
  // For good, and without another word.
  void stop();

 private:
  void connect();
  [[nodiscard]] bool keeps_away() const;
  [[nodiscard]] TimePoint next_attempt_at_full_server();

  void connection_ready() override;
  void connection_lost(const Failure& why) override;
  void connection_notified(const std::string& channel, const std::string& payload) override;

  Executor& executor_;
  const Dialling& dialling_;
  const Purpose purpose_;
  const Upkeep upkeep_;
  User& user_;

  std::unique_ptr<Connection> connection_;
  ServerInfo server_;
  Backoff urgent_backoff_{std::chrono::milliseconds(250)};  // of a client that holds locks, at a full server
  bool was_refused_as_full_ = false;
  bool breaking_off_ = false;
  common::Reconnect reconnect_;
};

}  // namespace dlock::postgres

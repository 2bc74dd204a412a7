// One server as the client uses it: its connections, and whether it can be used just now.
#pragma once

#include <optional>

#include <dlock/spi/executor.hpp>
#include <dlock/spi/lifetime.hpp>

#include "backends/common/connection_news.hpp"
#include "backends/redis/connection/command_client.hpp"
#include "backends/redis/connection/outage.hpp"
#include "backends/redis/connection/wire.hpp"
#include "backends/redis/options.hpp"

namespace dlock::redis {

// Which of its connections. With replicas_ack, acquires and renewals have connections of their own, because WAIT blocks
// the one that it comes over; otherwise they go over that for all.
enum class Line { common, acquires, renewals };

// In tasks only.
class Server {
 public:
  class User {
   public:
    User() = default;
    User(const User&) = delete;
    User& operator=(const User&) = delete;
    // A connection was made. acquires: which acquires go over.
    virtual void server_connected(Server& server, bool acquires) = 0;
    // A connection broke, or could not be made. All others are made again after this.
    virtual void server_broken(Server& server, const Failure& why) = 0;
    // everyone: as Outage says.
    virtual void server_usable(Server& server, bool everyone) = 0;

   protected:
    ~User() = default;
  };

  // options: of which host is the server's. All but options outlive it.
  Server(Executor& executor, Options options, const WireFactory& wires, common::ConnectionNews& news, User& user);

  [[nodiscard]] const Options& options() const noexcept { return options_; }
  [[nodiscard]] CommandClient& line(Line which) noexcept;
  [[nodiscard]] CommandClient& commands() noexcept { return commands_; }
  [[nodiscard]] Outage& outage() noexcept { return outage_; }

  // It may be the wrong server: makes all connections again.
  void reconnect(const Failure& why);
  // It is not needed any more, or not for now: ends all connections, and fails what is under way.
  void rest(const Failure& why);
  // For good, as CommandClient::stop().
  void stop();

 private:
  class Observer final : public common::ConnectionObserver {
   public:
    Observer(Server& server, common::ConnectionNews& news, bool acquires)
        : server_(server), news_(news), acquires_(acquires) {}
    void opened() override;
    void connected() override { news_.connected(); }
    void broken(const Failure& why) override;
    void not_needed() { news_.not_needed(); }

   private:
    Server& server_;
    common::ConnectionNews::Source news_;
    const bool acquires_;
  };

  const Options options_;
  User& user_;
  Outage outage_;
  Observer common_observer_;
  Observer acquiring_observer_;
  CommandClient commands_;
  std::optional<CommandClient> acquiring_;
  std::optional<CommandClient> renewing_;
  Lifetime lifetime_;
};

}  // namespace dlock::redis

// A connection that receives the messages of channels. In a cluster these are sharded channels, which a node has as
// long as it has their slot.
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <dlock/spi/executor.hpp>
#include <dlock/spi/lifetime.hpp>

#include "backends/redis/connection/link.hpp"
#include "backends/redis/connection/streams.hpp"
#include "backends/redis/options.hpp"

namespace dlock::redis {

// In tasks only.
class Subscriber final : private Link::User {
 public:
  // Never called inside a call to the subscriber.
  class User {
   public:
    User() = default;
    User(const User&) = delete;
    User& operator=(const User&) = delete;
    // Messages arrive from now on. One that was published before is missed.
    virtual void on_subscribed(const std::string& channel) = 0;
    virtual void on_message(const std::string& channel, const std::string& text) = 0;
    // Messages are missed from now on. After a break, the subscriber subscribes again by itself. If a node gave up a
    // channel's slot, subscribe() at the slot's new node.
    virtual void on_lost(const std::string& channel) = 0;
    // This client may not subscribe, so no message will arrive. Called once.
    virtual void on_forbidden(const Failure& why) = 0;

   protected:
    ~User() = default;
  };

  Subscriber(Executor& executor, const Options& options, StreamFactory streams, User& user);
  ~Subscriber();

  // Connects if needed. No effect if the channel is already wanted.
  void subscribe(const std::string& channel);
  void unsubscribe(const std::string& channel);
  // A useful message was received: if the connection breaks, the next one is made without a pause.
  void proven() { link_.proven(); }
  // Closes the connection without on_lost(), because new ones may lead to another server.
  void rest() { link_.rest(), forget(); }
  // Connects again after rest().
  void resume();
  // The channels that it is subscribed to, or will be once it is connected.
  [[nodiscard]] std::vector<std::string> channels() const;
  [[nodiscard]] bool is_forbidden() const noexcept { return forbidden_; }

 private:
  struct Channel {
    bool wanted = false;
    // Requests of this connection that the server has not confirmed; only the last of them counts.
    int joining = 0;
    int leaving = 0;
  };

  void send(bool subscribe, const std::string& channel);
  void read_push(const Reply& reply);
  [[nodiscard]] bool read_change(const std::string& name, std::string_view kind);
  void refused(const std::string& error);
  void forget();
  void report_lost(const std::vector<std::string>& channels);

  void link_ready() override;
  void link_received(Reply reply) override;
  void link_drained() override { link_.flush(); }
  void link_down(const Failure& why, bool was_ready) override;
  void link_silent() override;

  Executor& executor_;
  const Options& options_;
  User& user_;
  std::unordered_map<std::string, Channel> channels_;
  bool forbidden_ = false;
  Link link_;
  Lifetime lifetime_;
};

}  // namespace dlock::redis

// The connection on which the server tells us things: a set of channels, subscribed to again after every interruption.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <unordered_map>

#include <dlock/executor.hpp>
#include <dlock/lifetime.hpp>

#include "backends/redis/connection/link.hpp"
#include "backends/redis/connection/wire.hpp"
#include "backends/redis/options.hpp"

namespace dlock::redis {

// In tasks only.
class Subscriber final : private Link::User {
 public:
  // Never called inside a call to the subscriber. Messages can get lost whenever the connection does; subscribed() says
  // that from now on they come, so whoever waits for one should look by himself then.
  class Listener {
   public:
    Listener() = default;
    Listener(const Listener&) = delete;
    Listener& operator=(const Listener&) = delete;
    virtual void subscribed(const std::string& channel) = 0;
    virtual void message(const std::string& channel, const std::string& text) = 0;
    // The connection broke: messages are missed from now on.
    virtual void interrupted() = 0;
    // We lack the right to subscribe; nothing will come. At most once.
    virtual void forbidden(const Failure& why) = 0;

   protected:
    ~Listener() = default;
  };

  Subscriber(Executor& executor, const Options& options, WireFactory wires, Listener& listener);
  ~Subscriber();

  // Connects if need be.
  void subscribe(const std::string& channel);
  void unsubscribe(const std::string& channel);
  // A message was of use.
  void proven() noexcept { link_.proven(); }
  // Gives the connection up, because it may lead to another server than new ones do; nobody is told.
  void rest() { link_.rest(), forget(); }
  // Connects again after that.
  void resume();
  // Whether messages of that channel reach us now, as far as we know.
  [[nodiscard]] bool hears(const std::string& channel) const;
  [[nodiscard]] bool is_forbidden() const noexcept { return forbidden_; }
  void stop() { link_.stop(); }

 private:
  void send(std::string_view command, const std::string& channel);
  void take_news(const Reply& reply);
  void forget();

  void link_ready() override;
  void link_received(Reply reply) override;
  void link_drained() override;
  void link_down(const Failure& why, bool was_ready) override;
  void link_silent() override;

  Executor& executor_;
  const Options& options_;
  Listener& listener_;
  struct Channel {
    bool wanted = false;
    bool confirmed = false;
    // Requests of this connection that the server has not confirmed; only the last of them counts.
    int joining = 0;
    int leaving = 0;
  };
  std::unordered_map<std::string, Channel> channels_;
  bool forbidden_ = false;
  Link link_;
  Lifetime lifetime_;
};

}  // namespace dlock::redis

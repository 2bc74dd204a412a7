// The connection on which a server tells us things: a set of channels, subscribed to again after every interruption. At
// the node of a cluster they are sharded channels, which a node may give up, with the slot that they are in.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>

#include <dlock/spi/executor.hpp>
#include <dlock/spi/lifetime.hpp>

#include "backends/redis/connection/link.hpp"
#include "backends/redis/connection/subscriptions.hpp"
#include "backends/redis/connection/wire.hpp"
#include "backends/redis/options.hpp"

namespace dlock::redis {

// In tasks only.
class Subscriber final : public Subscriptions, private Link::User {
 public:
  Subscriber(Executor& executor, const Options& options, WireFactory wires, Listener& listener);
  ~Subscriber() override;

  void subscribe(const std::string& channel) override;
  void unsubscribe(const std::string& channel) override;
  void proven(const std::string& /*channel*/) override { link_.proven(); }
  // Gives the connection up, because it may lead to another server than new ones do; this is not reported.
  void rest() { link_.rest(), forget(); }
  // Connects again after that.
  void resume();
  // Whether messages of that channel reach this client now, as far as it knows.
  [[nodiscard]] bool hears(const std::string& channel) const;
  [[nodiscard]] bool is_forbidden() const noexcept override { return forbidden_; }
  void stop() { link_.stop(); }

 private:
  [[nodiscard]] std::string_view subscribe_word() const;
  void send(std::string_view command, const std::string& channel);
  void take_news(const Reply& reply);
  [[nodiscard]] bool take_change(const std::string& name, std::string_view kind);
  void refused(const std::string& error);
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

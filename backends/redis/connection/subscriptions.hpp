// The channels that a client listens to, wherever it has to listen.
#pragma once

#include <string>

#include <dlock/error.hpp>

namespace dlock::redis {

// In tasks only.
class Subscriptions {
 public:
  // Never called inside a call to the subscriptions. Messages can get lost whenever a connection does; subscribed()
  // says that from now on they come, so a waiter for one should look by itself then.
  class Listener {
   public:
    Listener() = default;
    Listener(const Listener&) = delete;
    Listener& operator=(const Listener&) = delete;
    virtual void subscribed(const std::string& channel) = 0;
    virtual void message(const std::string& channel, const std::string& text) = 0;
    // Messages of this channel are missed from now on.
    virtual void lost(const std::string& channel) = 0;
    // The connection broke: those of all channels are.
    virtual void interrupted() = 0;
    // We may not subscribe; nothing will come. At most once.
    virtual void forbidden(const Failure& why) = 0;

   protected:
    ~Listener() = default;
  };

  Subscriptions() = default;
  Subscriptions(const Subscriptions&) = delete;
  Subscriptions& operator=(const Subscriptions&) = delete;
  virtual ~Subscriptions() = default;

  // Connects if need be.
  virtual void subscribe(const std::string& channel) = 0;
  virtual void unsubscribe(const std::string& channel) = 0;
  // A message of it was of use.
  virtual void proven(const std::string& channel) = 0;
  [[nodiscard]] virtual bool is_forbidden() const noexcept = 0;
};

}  // namespace dlock::redis

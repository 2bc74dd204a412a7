// Tells the observer about several connections as if they were one: it stands when none of those that were made is
// broken.
#pragma once

#include <cstddef>

#include <dlock/backend.hpp>

#include "backends/postgres/commands.hpp"

namespace dlock::postgres {

// In tasks only.
class ConnectionNews {
 public:
  // told: whether the host is told at all.
  ConnectionNews(BackendHost& host, bool told) : host_(host), told_(told) {}

  // One of them. The news outlive it.
  class Source final : public Commands::Observer {
   public:
    explicit Source(ConnectionNews& news) : news_(news) {}
    void connected();
    void broken(const Failure& why);
    void commands_connected() override { connected(); }
    void commands_broken(const Failure& why) override { broken(why); }

   private:
    ConnectionNews& news_;
    bool broken_ = false;
  };

 private:
  void tell(ConnectionEvent event);

  BackendHost& host_;
  const bool told_;
  std::size_t broken_ = 0;
  bool connected_ = false;
};

}  // namespace dlock::postgres

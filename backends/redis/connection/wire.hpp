// A connection as those who speak Redis see it: bytes go out, replies come in. SocketWire is the real one; tests have
// one with a scripted server at the other end.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>

#include <dlock/clock.hpp>
#include <dlock/error.hpp>
#include <dlock/spi/executor.hpp>

#include "backends/redis/connection/reply.hpp"
#include "backends/redis/options.hpp"

namespace dlock::redis {

// In tasks only. Destroying it closes the connection; nothing is reported from then on.
class Wire {
 public:
  // Any of these may destroy the wire.
  class Events {
   public:
    Events() = default;
    Events(const Events&) = delete;
    Events& operator=(const Events&) = delete;
    virtual void opened() = 0;
    virtual void received(Reply reply) = 0;
    // All replies that had arrived have been handed over.
    virtual void drained() = 0;
    // The connection could not be made, or is broken. Nothing follows.
    virtual void closed(Failure why) = 0;

   protected:
    ~Events() = default;
  };

  Wire() = default;
  Wire(const Wire&) = delete;
  Wire& operator=(const Wire&) = delete;
  virtual ~Wire() = default;

  // Starts connecting; opened() or closed() follows, never inside the call. The caller enforces the deadline: here it
  // only divides the time between several addresses.
  virtual void open(TimePoint deadline) = 0;
  // Adds to what is to be sent. Only once it is open.
  virtual void write(std::string_view bytes) = 0;
  // Hands to the network what it takes now; the rest follows by itself. Reports nothing inside the call.
  virtual void flush() = 0;
  // Takes in what has arrived already, without waiting for the next turn. May report anything.
  virtual void receive() = 0;
  // From now on, closing throws away what the network has not taken, instead of sending it unexpectedly later.
  virtual void discard() noexcept = 0;
  // As common::Stream's.
  [[nodiscard]] virtual bool tls_unanswered() const noexcept { return false; }
  // The server at this address is the wrong one: new connections try the other addresses of its name first. Returns how
  // many addresses the name has.
  virtual std::size_t refuse_peer() { return 1; }
  // How many of the bytes written may have reached the server.
  [[nodiscard]] virtual std::uint64_t sent() const noexcept = 0;
};

// Executor, options and events outlive the wire.
using WireFactory = std::function<std::unique_ptr<Wire>(Executor&, const Options&, Wire::Events&)>;

}  // namespace dlock::redis

// Stream sockets: on the loopback interface and in the Unix domain, mostly.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "torture/rig/system_call.hpp"

namespace dlock::rig {

// Where a server listens: a port of an address, or the path of a Unix-domain socket.
struct Endpoint {
  std::uint16_t port = 0;
  std::string path = {};
  std::string address = "127.0.0.1";  // IPv4 or IPv6, in digits

  [[nodiscard]] static Endpoint loopback(std::uint16_t port) { return {.port = port}; }
  [[nodiscard]] static Endpoint at(std::string address, std::uint16_t port) {
    return {.port = port, .address = std::move(address)};
  }
  [[nodiscard]] static Endpoint unix_socket(std::string path) { return {.path = std::move(path)}; }
};

// Starts to connect a non-blocking socket; the first use of it tells whether that succeeded. Empty: refused at once.
[[nodiscard]] UniqueFd start_connect(const Endpoint& endpoint);
// A connected, blocking socket. Throws std::system_error.
[[nodiscard]] UniqueFd connect_to(const Endpoint& endpoint);

// A port that can be closed and opened again without another process taking it in between.
class Listener {
 public:
  // Of an IPv4 address. Port 0: the system picks one.
  explicit Listener(Endpoint at = Endpoint::loopback(0));

  [[nodiscard]] std::uint16_t port() const noexcept { return at_.port; }
  // -1 while closed.
  [[nodiscard]] int fd() const noexcept { return listening_.get(); }
  void open();
  // From now on connections are refused.
  void close() { listening_.reset(); }
  // The next connection, non-blocking; empty if there is none.
  [[nodiscard]] UniqueFd accept() const;

 private:
  Endpoint at_;
  UniqueFd reserved_;  // keeps the port while it is closed
  UniqueFd listening_;
};

// Makes the close of this socket a reset (RST), which throws away what is under way.
void reset_on_close(int fd);

}  // namespace dlock::rig

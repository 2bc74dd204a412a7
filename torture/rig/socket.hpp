// Stream sockets, mostly on the loopback interface and in the Unix domain.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "torture/rig/system_call.hpp"

namespace dlock::rig {

// The address of a server: a port of an IP address, or the path of a Unix-domain socket.
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

// Starts to connect a non-blocking socket, whose first use shows whether that succeeded. Empty: refused at once.
[[nodiscard]] UniqueFd start_connect(const Endpoint& endpoint);
// A connected, blocking socket. Throws std::system_error.
[[nodiscard]] UniqueFd connect_to(const Endpoint& endpoint);

// A listening port that can be closed and opened again, while no other process can take it.
class Listener {
 public:
  // On an IPv4 address. Port 0: the system picks one.
  explicit Listener(Endpoint at = Endpoint::loopback(0));

  [[nodiscard]] std::uint16_t port() const noexcept { return at_.port; }
  // -1 while closed.
  [[nodiscard]] int fd() const noexcept { return listening_.get(); }
  void open();
  // Refuses connections from now on.
  void close() { listening_.reset(); }
  // The next connection, non-blocking; empty if there is none.
  [[nodiscard]] UniqueFd accept() const;

 private:
  Endpoint at_;
  UniqueFd reserved_;  // keeps the port while listening_ is closed
  UniqueFd listening_;
};

// Makes closing this socket a reset (RST), which discards data in flight.
void reset_on_close(int fd);

}  // namespace dlock::rig

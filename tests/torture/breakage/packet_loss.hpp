// Loses a share of the packets to and from a port of the loopback interface, for as long as the object lives.
//
//   PacketLoss loss({.percent = 20, .port = server.port()});
//
// For a program in a network of its own (own_network.hpp): any other would lose the packets of strangers as well.
#pragma once

#include <cstdint>
#include <string>

namespace dlock::torture {

class PacketLoss {
 public:
  struct Share {
    int percent;         // 0..100; which packets it hits is the kernel's choice
    std::uint16_t port;  // of TCP or UDP
  };

  // Whether it can be done; the reason if not.
  [[nodiscard]] static bool available(std::string& why_not);

  // Throws std::invalid_argument for a share that makes no sense, std::runtime_error where it cannot be done.
  explicit PacketLoss(const Share& share);
  PacketLoss(const PacketLoss&) = delete;
  PacketLoss& operator=(const PacketLoss&) = delete;
  ~PacketLoss();

 private:
  std::string table_;
};

}  // namespace dlock::torture

// Loses a share of the packets that go through the loopback interface, for as long as the object lives.
//
//   PacketLoss loss({.percent = 20, .port = server.port(), .way = PacketLoss::Way::from_port});
//
// For a program in a network of its own (own_network.hpp): any other would lose the packets of strangers as well.
#pragma once

#include <cstdint>
#include <string>

namespace dlock::torture {

class PacketLoss {
 public:
  enum class Way : std::uint8_t { both, to_port, from_port };
  struct Share {
    int percent;             // 0..100; which packets it hits is the kernel's choice
    std::uint16_t port = 0;  // of TCP or UDP; 0 is every port
    Way way = Way::both;     // one way alone needs a port
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

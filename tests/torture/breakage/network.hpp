// A network that is this program's alone, in which it may break what it likes: a loopback interface and nothing else;
// and the loss of packets there.
#pragma once

#include <cstdint>
#include <string>

namespace dlock::torture {

// Processes that the program starts afterwards are in it as well. Before the program has threads: those it has would
// stay where they are. False, with the reason, where this machine does not permit it; nothing has changed then.
[[nodiscard]] bool enter_own_network(std::string& why_not);

// Loses a share of the packets to and from a port of the loopback interface, for as long as the object lives. For a
// program in a network of its own: any other would lose the packets of strangers as well.
class PacketLoss {
 public:
  struct Share {
    int percent;         // 0..100; which packets it hits is the kernel's choice
    std::uint16_t port;  // of TCP or UDP
  };

  // Whether it can be done; the reason if not.
  [[nodiscard]] static bool available(std::string& why_not);

  // Throws std::runtime_error where it cannot be done.
  explicit PacketLoss(const Share& share);
  PacketLoss(const PacketLoss&) = delete;
  PacketLoss& operator=(const PacketLoss&) = delete;
  ~PacketLoss();

 private:
  std::string table_;
};

}  // namespace dlock::torture

// A loopback port for a server that a test starts.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <cstdint>
#include <random>
#include <stdexcept>

#include "torture/rig/system_call.hpp"

namespace dlock::test {

// A port that is unused now. It is below the range from which Linux takes the ports of outgoing connections, so that it
// is still free when the server is started again later. Another program may take it before the server does: then the
// server has to be started on a different one.
[[nodiscard]] inline std::uint16_t free_port() {
  constexpr int attempts = 1000;
  std::random_device device;
  std::uniform_int_distribution<std::uint16_t> any(10'000, 32'767);
  for (int i = 0; i < attempts; ++i) {
    const rig::UniqueFd fd(rig::require(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), "socket"));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(any(device));
    if (::bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0) {
      return ntohs(address.sin_port);
    }
  }
  throw std::runtime_error("no free port on the loopback interface");
}

}  // namespace dlock::test

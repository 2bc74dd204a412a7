#include "tests/support/free_port.hpp"

#include <netinet/in.h>
#include <sys/socket.h>

#include <random>
#include <stdexcept>

#include "torture/rig/system_call.hpp"

namespace dlock::test {

namespace {

// Linux hands out 32768 and up unless told otherwise.
constexpr std::uint16_t lowest = 10'000;
constexpr std::uint16_t highest = 32'767;
constexpr int attempts = 1000;

bool is_free(std::uint16_t port) {
  const rig::UniqueFd fd(rig::require(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), "socket"));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(port);
  return ::bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0;
}

}  // namespace

std::uint16_t free_port() {
  std::random_device device;
  std::uniform_int_distribution<std::uint16_t> any(lowest, highest);
  for (int i = 0; i < attempts; ++i) {
    const std::uint16_t port = any(device);
    if (is_free(port)) return port;
  }
  throw std::runtime_error("no free port on the loopback interface");
}

}  // namespace dlock::test

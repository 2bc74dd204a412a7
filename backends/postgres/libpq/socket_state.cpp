#include "backends/postgres/libpq/socket_state.hpp"

#include <poll.h>
#include <sys/socket.h>

#include <array>

namespace dlock::postgres {

std::string unread_bytes(int socket) {
  std::array<char, 4096> bytes{};
  const ssize_t count = ::recv(socket, bytes.data(), bytes.size(), MSG_PEEK | MSG_DONTWAIT);
  return count > 0 ? std::string(bytes.data(), static_cast<std::size_t>(count)) : std::string();
}

bool has_hung_up(int socket) noexcept {
  pollfd about{.fd = socket, .events = POLLRDHUP, .revents = 0};
  return ::poll(&about, 1, 0) != 0;
}

}  // namespace dlock::postgres

#include "backends/postgres/libpq/received_bytes.hpp"

#include <linux/tcp.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>

namespace dlock::postgres {

std::uint64_t received_bytes(int socket) noexcept {
  tcp_info info{};
  socklen_t size = sizeof info;
  if (::getsockopt(socket, IPPROTO_TCP, TCP_INFO, &info, &size) != 0) return 0;
  return info.tcpi_bytes_received;  // 0 before Linux 4.1, which says less
}

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

#include "backends/common/received_bytes.hpp"

#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/socket.h>

namespace dlock::common {

std::uint64_t received_bytes(int socket) noexcept {
  tcp_info info{};
  socklen_t size = sizeof info;
  if (::getsockopt(socket, IPPROTO_TCP, TCP_INFO, &info, &size) != 0) return 0;
  return info.tcpi_bytes_received;  // 0 before Linux 4.1, which does not count them
}

}  // namespace dlock::common

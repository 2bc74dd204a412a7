#include "backends/postgres/libpq/received_bytes.hpp"

#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cstddef>

namespace dlock::postgres {

std::uint64_t received_bytes(int socket) noexcept {
  tcp_info info{};
  socklen_t size = sizeof info;
  if (::getsockopt(socket, IPPROTO_TCP, TCP_INFO, &info, &size) != 0) return 0;
  // Linux before 4.1 says less.
  return size >= offsetof(tcp_info, tcpi_bytes_received) + sizeof info.tcpi_bytes_received ? info.tcpi_bytes_received
                                                                                           : 0;
}

}  // namespace dlock::postgres

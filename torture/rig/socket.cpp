#include "torture/rig/socket.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cerrno>
#include <cstring>
#include <stdexcept>

namespace dlock::rig {

namespace {

constexpr int backlog = 1024;

sockaddr_un unix_address(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof(address.sun_path)) throw std::invalid_argument("too long for a socket: " + path);
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  return address;
}

// An address of any family, as connect() takes it.
class Address {
 public:
  explicit Address(const Endpoint& endpoint) {
    sockaddr_in v4{};
    v4.sin_family = AF_INET;
    v4.sin_port = htons(endpoint.port);
    sockaddr_in6 v6{};
    v6.sin6_family = AF_INET6;
    v6.sin6_port = htons(endpoint.port);
    if (!endpoint.path.empty()) {
      take(unix_address(endpoint.path));
    } else if (::inet_pton(AF_INET, endpoint.address.c_str(), &v4.sin_addr) == 1) {
      take(v4);
    } else if (::inet_pton(AF_INET6, endpoint.address.c_str(), &v6.sin6_addr) == 1) {
      take(v6);
    } else {
      throw std::invalid_argument("no address: " + endpoint.address);
    }
  }

  [[nodiscard]] int family() const noexcept { return storage_.ss_family; }
  [[nodiscard]] int bind(int fd) const { return ::bind(fd, reinterpret_cast<const sockaddr*>(&storage_), size_); }
  [[nodiscard]] int connect(int fd) const { return ::connect(fd, reinterpret_cast<const sockaddr*>(&storage_), size_); }

 private:
  template <class A>
  void take(const A& address) {
    std::memcpy(&storage_, &address, sizeof(address));
    size_ = sizeof(address);
  }

  sockaddr_storage storage_{};
  socklen_t size_ = 0;
};

void send_at_once(int fd) {
  const int on = 1;
  require(::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)), "TCP_NODELAY");
}

// A socket and what connect() answered.
struct Attempt {
  UniqueFd fd;
  int error;
};

Attempt attempt(const Endpoint& endpoint, int flags) {
  const Address address(endpoint);
  UniqueFd fd(require(::socket(address.family(), SOCK_STREAM | SOCK_CLOEXEC | flags, 0), "socket"));
  const int error = address.connect(fd.get()) == 0 ? 0 : errno;
  if (address.family() != AF_UNIX) send_at_once(fd.get());
  return {.fd = std::move(fd), .error = error};
}

// SO_REUSEPORT lets the reserved and the listening socket share the port.
UniqueFd bound_socket(const Endpoint& at) {
  UniqueFd fd(require(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), "socket"));
  const int on = 1;
  require(::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)), "SO_REUSEADDR");
  require(::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEPORT, &on, sizeof(on)), "SO_REUSEPORT");
  require(Address(at).bind(fd.get()), "bind");
  return fd;
}

}  // namespace

UniqueFd start_connect(const Endpoint& endpoint) {
  Attempt result = attempt(endpoint, SOCK_NONBLOCK);
  if (result.error != 0 && result.error != EINPROGRESS) return {};
  return std::move(result.fd);
}

UniqueFd connect_to(const Endpoint& endpoint) {
  Attempt result = attempt(endpoint, 0);
  if (result.error != 0) throw std::system_error(result.error, std::generic_category(), "connect");
  return std::move(result.fd);
}

Listener::Listener(Endpoint at) : at_(std::move(at)), reserved_(bound_socket(at_)) {
  sockaddr_in address{};
  socklen_t size = sizeof(address);
  require(::getsockname(reserved_.get(), reinterpret_cast<sockaddr*>(&address), &size), "getsockname");
  at_.port = ntohs(address.sin_port);
  open();
}

void Listener::open() {
  if (listening_) return;
  listening_ = bound_socket(at_);
  require(::listen(listening_.get(), backlog), "listen");
}

UniqueFd Listener::accept() const {
  UniqueFd fd(::accept4(listening_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (fd) send_at_once(fd.get());
  return fd;
}

void reset_on_close(int fd) {
  const linger now{.l_onoff = 1, .l_linger = 0};
  require(::setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now)), "SO_LINGER");
}

}  // namespace dlock::rig

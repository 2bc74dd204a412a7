#include "torture/rig/network.hpp"

#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <memory>
#include <stdexcept>
#include <system_error>

namespace dlock::rig {

namespace {

using Clock = std::chrono::steady_clock;

struct FreeAddresses {
  void operator()(addrinfo* list) const noexcept { ::freeaddrinfo(list); }
};

// False: the time has passed.
bool wait_for(int fd, short events, Clock::time_point deadline) {
  for (;;) {
    pollfd source{.fd = fd, .events = events, .revents = 0};
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now());
    const int ready = ::poll(&source, 1, static_cast<int>(std::max<std::int64_t>(left.count(), 0)));
    if (ready > 0) return true;
    if (ready == 0 || errno != EINTR) return false;
  }
}

util::UniqueFd connect_address(const addrinfo& address, Clock::time_point deadline) {
  util::UniqueFd fd(::socket(address.ai_family, address.ai_socktype | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd) return {};
  if (::connect(fd.get(), address.ai_addr, address.ai_addrlen) != 0) {
    if (errno != EINPROGRESS || !wait_for(fd.get(), POLLOUT, deadline)) return {};
    int error = 0;
    socklen_t size = sizeof(error);
    if (::getsockopt(fd.get(), SOL_SOCKET, SO_ERROR, &error, &size) != 0 || error != 0) return {};
  }
  const int flags = ::fcntl(fd.get(), F_GETFL);
  if (flags < 0 || ::fcntl(fd.get(), F_SETFL, flags & ~O_NONBLOCK) != 0) return {};
  return fd;
}

}  // namespace

util::UniqueFd connect_to(const HostPort& host, std::chrono::milliseconds limit) {
  const std::string shown = host.name + ":" + std::to_string(host.port);
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int failure = ::getaddrinfo(host.name.c_str(), std::to_string(host.port).c_str(), &hints, &found);
  if (failure != 0) throw std::runtime_error(shown + ": " + ::gai_strerror(failure));
  const std::unique_ptr<addrinfo, FreeAddresses> addresses(found);
  const auto deadline = Clock::now() + limit;
  for (const addrinfo* each = addresses.get(); each != nullptr; each = each->ai_next) {
    if (util::UniqueFd fd = connect_address(*each, deadline)) return fd;
  }
  throw std::runtime_error(shown + " cannot be reached");
}

std::string peer_address(int fd) {
  sockaddr_storage address{};
  socklen_t size = sizeof(address);
  std::array<char, NI_MAXHOST> text{};
  if (::getpeername(fd, reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    throw std::system_error(errno, std::generic_category(), "getpeername");
  }
  const int failure = ::getnameinfo(reinterpret_cast<const sockaddr*>(&address), size, text.data(), text.size(),
                                    nullptr, 0, NI_NUMERICHOST);
  if (failure != 0) throw std::runtime_error(std::string("getnameinfo: ") + ::gai_strerror(failure));
  return text.data();
}

std::string ask(const HostPort& host, const std::string& text, std::chrono::milliseconds limit) {
  const auto deadline = Clock::now() + limit;
  const util::UniqueFd fd = connect_to(host, limit);
  if (::send(fd.get(), text.data(), text.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(text.size())) {
    throw std::system_error(errno, std::generic_category(), "send");
  }
  std::string answer;
  std::array<char, 4096> bytes;
  for (;;) {
    if (!wait_for(fd.get(), POLLIN, deadline)) throw std::runtime_error(host.name + " does not answer");
    const ssize_t n = ::recv(fd.get(), bytes.data(), bytes.size(), MSG_DONTWAIT);
    if (n == 0) return answer;
    if (n > 0) {
      answer.append(bytes.data(), static_cast<std::size_t>(n));
    } else if (errno != EAGAIN && errno != EINTR) {
      throw std::system_error(errno, std::generic_category(), "recv");
    }
  }
}

}  // namespace dlock::rig

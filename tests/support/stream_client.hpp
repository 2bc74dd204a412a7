// The client's side of a connection, blocking, for the tests of this directory.
#pragma once

#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>

#include "torture/rig/hang_guard.hpp"
#include "torture/rig/socket.hpp"

namespace dlock::test {

class StreamClient {
 public:
  enum class End { none, close, reset };

  explicit StreamClient(std::uint16_t port) : fd_(rig::connect_to(rig::Endpoint::loopback(port))) {
    const timeval limit{.tv_sec = rig::hang_guard.count(), .tv_usec = 0};
    rig::require(::setsockopt(fd_.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit)), "SO_RCVTIMEO");
  }

  void send(std::string_view text) const {
    const auto n = rig::require(::send(fd_.get(), text.data(), text.size(), MSG_NOSIGNAL), "send");
    if (static_cast<std::size_t>(n) != text.size()) throw std::runtime_error("sent only a part");
  }
  void finish_sending() const { rig::require(::shutdown(fd_.get(), SHUT_WR), "shutdown"); }
  void close() { fd_.reset(); }

  // So many bytes, or fewer if the connection ends before; end() tells which.
  [[nodiscard]] std::string receive(std::size_t count) {
    std::string text;
    std::array<char, 65536> bytes;
    while (text.size() < count && end_ == End::none) {
      const ssize_t n = ::recv(fd_.get(), bytes.data(), std::min(bytes.size(), count - text.size()), 0);
      if (n < 0 && errno == ECONNRESET) {
        end_ = End::reset;
      } else if (rig::require(n, "hang: nothing comes") == 0) {
        end_ = End::close;
      } else {
        text.append(bytes.data(), static_cast<std::size_t>(n));
      }
    }
    return text;
  }
  // Everything until the connection ends.
  [[nodiscard]] std::string receive_rest() { return receive(std::string::npos); }
  [[nodiscard]] End end() const noexcept { return end_; }
  // Whether there is unread data, or the end.
  [[nodiscard]] bool has_input() const {
    char byte = 0;
    return ::recv(fd_.get(), &byte, 1, MSG_PEEK | MSG_DONTWAIT) >= 0 || (errno != EAGAIN && errno != EWOULDBLOCK);
  }

 private:
  rig::UniqueFd fd_;
  End end_ = End::none;
};

}  // namespace dlock::test

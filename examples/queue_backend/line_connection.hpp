// Lines over TCP, without blocking: the executor reports when the socket is ready to read and to write.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <memory>
#include <string>
#include <system_error>
#include <utility>

#include <dlock/spi/backend.hpp>
#include <dlock/spi/lifetime.hpp>

namespace example {

// In tasks only.
class LineConnection {
 public:
  class Events {
   public:
    virtual void received(const std::string& line) = 0;
    virtual void ended(dlock::Failure why) = 0;  // once at most

   protected:
    ~Events() = default;  // both may destroy the connection
  };

  LineConnection(dlock::Executor& executor, const sockaddr_in& server, Events& events)
      : socket_(server), descriptor_(executor.watch(socket_.fd)), events_(events) {
    wait_readable();  // also the failure of the connect
  }
  void send(const std::string& line) {
    output_ += line + "\n";
    wait_writable();
  }

 private:
  struct Socket {
    explicit Socket(const sockaddr_in& server) : fd(::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)) {
      const auto* address = reinterpret_cast<const sockaddr*>(&server);
      if (::connect(fd, address, sizeof server) != 0 && errno != EINPROGRESS) error = errno;
    }
    Socket(const Socket&) = delete;
    Socket& operator=(const Socket&) = delete;
    ~Socket() { ::close(fd); }
    const int fd;
    int error = 0;
  };

  void wait_readable() {
    descriptor_->async_wait(dlock::Descriptor::Interest::readable, [this](std::error_code) { receive(); });
  }
  void wait_writable() {
    if (std::exchange(waits_writable_, true)) return;
    descriptor_->async_wait(dlock::Descriptor::Interest::writable, [this](std::error_code) { flush(); });
  }
  void flush() {
    waits_writable_ = false;
    const ssize_t count = ::send(socket_.fd, output_.data(), output_.size(), MSG_NOSIGNAL);
    if (count < 0 && errno != EAGAIN) return fail(errno);
    if (count > 0) output_.erase(0, static_cast<std::size_t>(count));
    if (!output_.empty()) wait_writable();
  }
  void receive() {
    std::array<char, 16384> buffer;
    const ssize_t count = ::recv(socket_.fd, buffer.data(), buffer.size(), 0);
    if (count == 0) return events_.ended({dlock::errc::unavailable, "the server closed the connection"});
    if (count < 0 && errno != EAGAIN) return fail(errno);
    if (count > 0) input_.append(buffer.data(), static_cast<std::size_t>(count));
    const dlock::Lifetime::Watch self = lifetime_.watch();
    for (std::size_t end = input_.find('\n'); end != std::string::npos; end = input_.find('\n')) {
      const std::string line = input_.substr(0, end);
      input_.erase(0, end + 1);
      events_.received(line);
      if (self.over()) return;
    }
    if (input_.size() > 65536) return events_.ended({dlock::errc::protocol, "the server sent an endless line"});
    wait_readable();
  }
  void fail(int error) {
    const int reason = socket_.error != 0 ? socket_.error : error;
    events_.ended({dlock::errc::unavailable, std::generic_category().message(reason)});
  }

  const Socket socket_;
  const std::unique_ptr<dlock::Descriptor> descriptor_;
  Events& events_;
  std::string input_;
  std::string output_;
  bool waits_writable_ = false;
  dlock::Lifetime lifetime_;
};

}  // namespace example

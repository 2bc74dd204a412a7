// Host names to addresses, without blocking the engine: getaddrinfo() has no deadline, so it runs on a thread of its
// own, which is never joined.
#pragma once

#include <sys/socket.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <dlock/executor.hpp>
#include <dlock/result.hpp>

namespace dlock::util {

struct Address {
  sockaddr_storage storage{};
  socklen_t length = 0;
  int family = 0;

  [[nodiscard]] const sockaddr* get() const noexcept { return reinterpret_cast<const sockaddr*>(&storage); }
  // "127.0.0.1" or "::1".
  [[nodiscard]] std::string to_string() const;
};

// A question under way. Destroying it means that the answer is not wanted; in tasks only.
class Resolution {
 public:
  using Handler = std::function<void(Result<std::vector<Address>>)>;

  // Calls done later, as a task: with at least one TCP address, in the order of preference (RFC 6724), or with
  // errc::unavailable. A numeric address needs neither thread nor name service.
  Resolution(Executor& executor, const std::string& host, std::uint16_t port, Handler done);
  ~Resolution();
  Resolution(const Resolution&) = delete;
  Resolution& operator=(const Resolution&) = delete;

 private:
  struct Shared;
  std::shared_ptr<Shared> shared_;
};

}  // namespace dlock::util

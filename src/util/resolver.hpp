// Host names to addresses, without blocking the engine: getaddrinfo() has no deadline, so it runs on a thread of its
// own, which is never joined. All clients of a process share these threads: there is at most one for each name.
#pragma once

#include <sys/socket.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <dlock/clock.hpp>
#include <dlock/spi/executor.hpp>
#include <dlock/spi/result.hpp>

namespace dlock::util {

struct Address {
  sockaddr_storage storage{};
  socklen_t length = 0;
  int family = 0;

  [[nodiscard]] const sockaddr* get() const noexcept { return reinterpret_cast<const sockaddr*>(&storage); }
  // "127.0.0.1" or "::1".
  [[nodiscard]] std::string to_string() const;
};

using Addresses = std::vector<Address>;

// Looks names up, each on a thread of its own. While the look-up of a name is in flight, further requests for it wait
// for the same answer. After a failed look-up, the next one of that name starts only after a pause, which grows; until
// then, requests get the same failure. Any thread.
class Resolver {
 public:
  // Blocks; may be called by several threads at once. The ports are 0.
  using LookUp = std::function<Result<Addresses>(const std::string& host)>;

  // getaddrinfo(), and the clock of leases.
  Resolver();
  Resolver(LookUp look_up, std::shared_ptr<const Clock> clock);

  // All clients use it.
  [[nodiscard]] static Resolver& of_process();

 private:
  friend class Resolution;
  class Names;
  std::shared_ptr<Names> names_;  // shared with the threads
};

// A request for the addresses of a host. Destroying it means that the answer is not wanted; in tasks only.
class Resolution {
 public:
  using Handler = std::function<void(Result<Addresses>)>;

  // Calls done later, as a task: with at least one TCP address, in the order of preference (RFC 6724), or with
  // errc::unavailable. A numeric address needs neither thread nor name service.
  Resolution(Executor& executor, const std::string& host, std::uint16_t port, Handler done,
             Resolver& resolver = Resolver::of_process());
  ~Resolution();
  Resolution(const Resolution&) = delete;
  Resolution& operator=(const Resolution&) = delete;

 private:
  friend class Resolver;
  struct Shared;
  std::shared_ptr<Shared> shared_;
};

}  // namespace dlock::util

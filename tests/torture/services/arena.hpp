// A lock service of a test's own, with all that can be done to it.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "torture/run/torture.hpp"

namespace dlock::torture {

class Arena {
 public:
  Arena() = default;
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;
  virtual ~Arena() = default;

  // Of its servers, in the order in which a URL names them. None: there is nothing between it and its clients.
  [[nodiscard]] virtual std::vector<std::uint16_t> ports() const = 0;
  // Which proxies are in front of its servers now, in the same order. They outlive it.
  virtual void set_proxies(const std::vector<rig::TcpProxy*>& /*proxies*/) {}
  // With servers, or proxies in front of them, at these ports.
  [[nodiscard]] virtual std::string url(const std::vector<std::uint16_t>& ports) const = 0;
  [[nodiscard]] virtual std::vector<Fault> faults() { return {}; }
  // In the service, after all have quit: of these locks, which are of one kind.
  [[nodiscard]] virtual std::vector<std::string> leftovers(LockKind lock_kind,
                                                           const std::vector<std::string>& locks) = 0;
  // What is different about this service.
  virtual void adjust(Setup& /*setup*/) const {}
};

struct ArenaKind {
  std::string name;
  std::function<std::unique_ptr<Arena>()> make;
  // Of which kind the locks are, and how many permits each has.
  LockKind lock_kind = LockKind::lock;
  std::uint32_t permits = 1;
};
// The same arena with read-write locks, and with semaphores that have fewer permits than there are workers.
[[nodiscard]] inline ArenaKind read_write(std::string name, std::function<std::unique_ptr<Arena>()> make) {
  return {std::move(name), std::move(make), LockKind::read_write};
}
[[nodiscard]] inline ArenaKind semaphore(std::string name, std::function<std::unique_ptr<Arena>()> make) {
  return {std::move(name), std::move(make), LockKind::semaphore, 2};
}
// What each kind adds to a backend's prefix.
[[nodiscard]] inline std::string prefix_suffix(LockKind lock_kind) {
  switch (lock_kind) {
    case LockKind::lock:
      break;
    case LockKind::read_write:
      return ".rw";
    case LockKind::semaphore:
      return ".sem";
    case LockKind::election:
      return ".elect";
  }
  return {};
}
inline void PrintTo(const ArenaKind& kind, std::ostream* out) {
  *out << kind.name;
}

[[nodiscard]] std::vector<ArenaKind> file_arenas();
[[nodiscard]] std::vector<ArenaKind> redis_arenas();
[[nodiscard]] std::vector<ArenaKind> zookeeper_arenas();
[[nodiscard]] std::vector<ArenaKind> postgres_arenas();
[[nodiscard]] std::vector<ArenaKind> etcd_arenas();
// Of all backends that are built.
[[nodiscard]] std::vector<ArenaKind> all_arenas();

// Of servers at these ports of this machine, comma-separated.
[[nodiscard]] inline std::string addresses_of(const std::vector<std::uint16_t>& ports) {
  std::string text;
  for (const std::uint16_t port : ports) text += (text.empty() ? "" : ",") + ("127.0.0.1:" + std::to_string(port));
  return text;
}

// What one server can be made to suffer: killed, restarted, stopped. It must outlive the faults.
template <class Server>
[[nodiscard]] std::vector<Fault> faults_of_server(Server& server) {
  return {{"server killed", "server",
           [&server]() -> Heal {
             server.kill();
             return [&server] { server.start(); };
           },
           Linger::within_lease, 1, Opens::when_struck},
          {"server restarted", "server",
           [&server]() -> Heal {
             server.stop();
             server.start();
             return [] {};
           },
           Linger::briefly, 1, Opens::when_struck},
          {"server stopped", "server",
           [&server]() -> Heal {
             server.freeze();
             return [&server] { server.thaw(); };
           },
           Linger::beyond_lease}};
}

}  // namespace dlock::torture

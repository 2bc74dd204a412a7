// The servers behind a subject, and a session to look at what they keep.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "tests/support/zookeeper_client.hpp"
#include "tests/support/zookeeper_server.hpp"

namespace dlock::conformance {

// As the C client takes it.
[[nodiscard]] std::string addresses_of(const std::vector<std::uint16_t>& ports);

class ZooKeeperService {
 public:
  ZooKeeperService() = default;
  ZooKeeperService(const ZooKeeperService&) = delete;
  ZooKeeperService& operator=(const ZooKeeperService&) = delete;
  virtual ~ZooKeeperService() = default;

  // Where clients connect to.
  [[nodiscard]] virtual std::vector<std::uint16_t> ports() const = 0;
  // Of clients, by all servers, so far.
  [[nodiscard]] virtual std::int64_t requests() = 0;
  virtual void restart() = 0;
  // Sees what the leader has acknowledged by now.
  [[nodiscard]] virtual test::ZooKeeperClient& session() = 0;

  // Started when they are needed first, so that helper processes, which make no fixtures, have no servers.
  [[nodiscard]] static ZooKeeperService& standalone();
  [[nodiscard]] static ZooKeeperService& ensemble();
};

}  // namespace dlock::conformance

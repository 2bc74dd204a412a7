// What a sentinel says about a service. No I/O.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <dlock/spi/result.hpp>

#include "backends/common/host.hpp"
#include "backends/redis/connection/reply.hpp"

namespace dlock::redis {

struct ServiceState {
  std::optional<common::Host> master;
  // Each failover has a greater one.
  std::uint64_t epoch = 0;
  std::uint32_t replicas = 0;  // also those that are down
  std::uint32_t quorum = 0;
  std::chrono::milliseconds down_after{};  // how long a master is silent before it counts as down
};

// The reply to SENTINEL GET-MASTER-ADDR-BY-NAME. errc::invalid_argument: that sentinel knows no such service.
[[nodiscard]] Result<common::Host> read_address(const Reply& reply);
// The reply to SENTINEL MASTER, without the address, which is an old one during a failover.
[[nodiscard]] Result<ServiceState> read_service(const Reply& reply);
struct SentinelId {
  common::Host host;
  std::string id;  // empty: not known
};
// The reply to SENTINEL SENTINELS. What makes no sense is left out.
[[nodiscard]] std::vector<SentinelId> read_sentinels(const Reply& reply);
// The new master, if a message on +switch-master names it for that service.
[[nodiscard]] std::optional<common::Host> switched_to(std::string_view message, std::string_view service);

}  // namespace dlock::redis

// The reply of one sentinel about a service. No I/O.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <dlock/spi/result.hpp>

#include "backends/common/host.hpp"
#include "backends/redis/connection/command.hpp"
#include "backends/redis/connection/reply.hpp"

namespace dlock::redis {

struct SentinelReply {
  common::Host sentinel;
  std::optional<Failure> problem = {};  // why the master or its state is missing
  std::optional<common::Host> master = {};
  std::optional<std::uint64_t> epoch = {};  // each failover has a greater one
  std::uint32_t replicas = 0;               // including those that are down
  std::uint32_t quorum = 0;
  std::chrono::milliseconds down_after{};  // a master that does not answer for so long counts as down
  // The address and the id of further sentinels of the service, and the id of this one; empty: unknown.
  std::vector<std::pair<common::Host, std::string>> others = {};
  std::string id = {};
};

// Their replies make a SentinelReply.
[[nodiscard]] std::vector<Command> sentinel_commands(const std::string& service);
[[nodiscard]] SentinelReply read_sentinel(const common::Host& sentinel, const std::vector<Result<Reply>>& replies);

}  // namespace dlock::redis

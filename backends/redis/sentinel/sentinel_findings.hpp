// What endangers locks in a service that sentinels look after.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include <dlock/info.hpp>
#include <dlock/spi/backend.hpp>

#include "backends/redis/connection/command_client.hpp"
#include "backends/redis/options.hpp"
#include "backends/redis/sentinel/sentinels.hpp"

namespace dlock::redis {

// What there is to say about the master, and about the sentinels. Answers within twice the response timeout and half a
// second for the sentinels. Leaves nothing behind. In tasks only.
void diagnose(CommandClient& commands, const std::shared_ptr<Sentinels>& sentinels,
              Backend::Handler<std::vector<Finding>> done);

// The master's min-replicas-to-write and min-replicas-max-lag in seconds, if it could be asked.
struct ReplicaSettings {
  std::optional<std::uint32_t> min_replicas = std::nullopt;
  std::optional<std::uint32_t> max_lag = std::nullopt;
};
// No I/O.
[[nodiscard]] std::vector<Finding> judge_sentinels(const std::vector<Sentinels::Said>& said, const Options& options,
                                                   const ReplicaSettings& settings);

}  // namespace dlock::redis

// What endangers locks in a service that sentinels look after.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include <dlock/backend.hpp>
#include <dlock/info.hpp>

#include "backends/redis/connection/command_client.hpp"
#include "backends/redis/options.hpp"
#include "backends/redis/sentinel/sentinels.hpp"

namespace dlock::redis {

// What there is to say about the master, and about the sentinels. Answers within the response timeout, or within what
// each sentinel is given. Leaves nothing behind. In tasks only.
void diagnose(CommandClient& commands, const std::shared_ptr<Sentinels>& sentinels,
              Backend::Handler<std::vector<Finding>> done);

// min_replicas: the master's min-replicas-to-write, if it could be asked. No I/O.
[[nodiscard]] std::vector<Finding> judge_sentinels(const std::vector<Sentinels::Said>& said, const Options& options,
                                                   std::optional<std::uint32_t> min_replicas);

}  // namespace dlock::redis

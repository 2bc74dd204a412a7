// The dangers to locks in a service that sentinels monitor.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include <dlock/info.hpp>
#include <dlock/spi/backend.hpp>

#include "backends/redis/connection/command_client.hpp"
#include "backends/redis/sentinel/sentinels.hpp"

namespace dlock::redis {

// Findings about the master, and about the sentinels. Answers within twice the response timeout and half a second for
// the sentinels. Leaves nothing behind. In tasks only.
void diagnose(CommandClient& commands, const std::shared_ptr<Sentinels>& sentinels,
              Backend::Handler<std::vector<Finding>> done);

// master: if known. config: its reply to CONFIG GET min-replicas-*, or any other reply if it is not known. No I/O.
[[nodiscard]] std::vector<Finding> judge_sentinels(const std::vector<SentinelReply>& replies, const Options& options,
                                                   const std::optional<common::Host>& master, const Reply& config);

}  // namespace dlock::redis

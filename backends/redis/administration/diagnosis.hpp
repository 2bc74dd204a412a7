// Looks for what endangers locks in a Redis server: its role, its settings, its clock, the rights of our user.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include <dlock/info.hpp>
#include <dlock/spi/backend.hpp>

#include "backends/redis/connection/command_client.hpp"
#include "backends/redis/options.hpp"

namespace dlock::redis {

// Answers within the response timeout. Leaves nothing behind. In tasks only.
void diagnose(CommandClient& commands, Backend::Handler<std::vector<Finding>> done);

// Without TLS an attacker on the network path can forge messages, and so the locks. No I/O.
[[nodiscard]] Finding judge_encryption(const Options& options);

// How long a master is silent before another one may take its place, by that setting, against a lease. No I/O.
[[nodiscard]] Finding judge_down_after(std::string check, const std::string& setting,
                                       std::chrono::milliseconds down_after, const Options& options);

}  // namespace dlock::redis

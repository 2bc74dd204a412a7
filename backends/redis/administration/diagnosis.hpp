// Checks a Redis server for dangers to locks: its role, settings and clock, and the rights of this user.
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

// Compares a lease with the time after which a silent master counts as down. setting: its name. No I/O.
[[nodiscard]] Finding judge_down_after(std::string check, const std::string& setting,
                                       std::chrono::milliseconds down_after, const Options& options);

}  // namespace dlock::redis

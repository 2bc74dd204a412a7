// Looks for what endangers locks in a Redis server: its role, its settings, its clock, the rights of our user.
#pragma once

#include <vector>

#include <dlock/backend.hpp>

#include "backends/redis/command_client.hpp"

namespace dlock::redis {

// Answers within the response timeout. Leaves nothing behind. In tasks only.
void diagnose(CommandClient& commands, Backend::Handler<std::vector<Finding>> done);

}  // namespace dlock::redis

// Questions about locks, breaking one, and forgetting names.
#pragma once

#include <string>
#include <vector>

#include <dlock/backend.hpp>

#include "backends/redis/connection/command_client.hpp"

namespace dlock::redis {

// Each answers within the response timeout. In tasks only.
void inspect(CommandClient& commands, Space space, const std::string& name, Backend::Handler<LockInfo> done);
void list(CommandClient& commands, Space space, Backend::Handler<std::vector<LockInfo>> done);
void break_lock(CommandClient& commands, Space space, const std::string& name, Backend::Handler<bool> done);
void forget(CommandClient& commands, const Forgetting& what, Backend::Handler<std::vector<std::string>> done);

}  // namespace dlock::redis

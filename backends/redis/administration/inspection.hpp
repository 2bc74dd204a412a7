// Questions about locks, breaking one, and forgetting names.
#pragma once

#include <string>
#include <vector>

#include <dlock/spi/backend.hpp>

#include "backends/redis/connection/servers.hpp"

namespace dlock::redis {

// Each answers within the response timeout. In tasks only.
void inspect(Servers& servers, LockKind kind, const std::string& name, Backend::Handler<LockInfo> done);
void list(Servers& servers, LockKind kind, Backend::Handler<std::vector<LockInfo>> done);
void break_lock(Servers& servers, LockKind kind, const std::string& name, Backend::Handler<bool> done);
void forget(Servers& servers, const Forgetting& what, Backend::Handler<std::vector<std::string>> done);

}  // namespace dlock::redis

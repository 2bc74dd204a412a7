// Queries of locks, and breaking them.
#pragma once

#include <string>
#include <vector>

#include <dlock/spi/backend.hpp>

#include "backends/etcd/connection/client.hpp"

namespace dlock::etcd {

// Each answers within the response timeout. In tasks only.
void inspect(Client& client, LockKind kind, const std::string& name, Backend::Handler<LockInfo> done);
void list(Client& client, LockKind kind, Backend::Handler<std::vector<LockInfo>> done);
// Removes the keys of its holders.
void break_lock(Client& client, LockKind kind, const std::string& name, Backend::Handler<bool> done);

}  // namespace dlock::etcd

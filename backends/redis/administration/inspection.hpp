// Inspects, lists, breaks and forgets locks.
#pragma once

#include <string>
#include <vector>

#include <dlock/spi/backend.hpp>

#include "backends/redis/topology/topology.hpp"

namespace dlock::redis {

// Each answers within the response timeout. In tasks only.
void inspect(Topology& topology, LockKind kind, const std::string& name, Backend::Handler<LockInfo> done);
void list(Topology& topology, LockKind kind, Backend::Handler<std::vector<LockInfo>> done);
void break_lock(Topology& topology, LockKind kind, const std::string& name, Backend::Handler<bool> done);
void forget(Topology& topology, const Forgetting& what, Backend::Handler<std::vector<std::string>> done);

}  // namespace dlock::redis

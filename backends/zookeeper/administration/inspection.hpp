// Queries of locks, breaking them, and forgetting their names.
#pragma once

#include <string>
#include <vector>

#include <dlock/spi/backend.hpp>

#include "backends/zookeeper/administration/queries.hpp"
#include "backends/zookeeper/nodes/requests.hpp"
#include "backends/zookeeper/options.hpp"

namespace dlock::zookeeper {

// The locks of a kind, or one of them.
struct Subject {
  const Options& options;
  Requests& requests;
  LockKind kind;
  std::string name = {};
};

// In tasks only. A ping also checks that the parent of locks may be listed: a missing node cannot refuse the client.
void ping(Queries& queries, const Subject& subject, Backend::Handler<bool> done);
void inspect(Queries& queries, const Subject& subject, Backend::Handler<LockInfo> done);
void list(Queries& queries, const Subject& all, Backend::Handler<std::vector<LockInfo>> done);
// Removes the nodes of its holders.
void break_lock(Queries& queries, const Subject& subject, Backend::Handler<bool> done);
// Removes the node of the lock, whatever its age: tokens belong to the ensemble.
void forget(Queries& queries, const Subject& subject, Backend::Handler<std::vector<std::string>> done);

}  // namespace dlock::zookeeper

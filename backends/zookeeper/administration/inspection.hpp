// Queries of locks, breaking them, and forgetting their names.
#pragma once

#include <string>
#include <vector>

#include <dlock/spi/backend.hpp>

#include "backends/zookeeper/administration/queries.hpp"
#include "backends/zookeeper/nodes/requests.hpp"
#include "backends/zookeeper/options.hpp"

namespace dlock::zookeeper {

// In tasks only.
class Inspection {
 public:
  Inspection(const Options& options, Requests& requests, Queries& queries)
      : options_(options), requests_(requests), queries_(queries) {}

  // That the parent of locks may be listed is part of it: a missing node has nothing that could refuse the client.
  void ping(const std::string& name, Backend::Handler<bool> done);
  void inspect(LockKind kind, const std::string& name, Backend::Handler<LockInfo> done);
  void list(LockKind kind, Backend::Handler<std::vector<LockInfo>> done);
  // Removes the nodes of its holders.
  void break_lock(LockKind kind, const std::string& name, Backend::Handler<bool> done);
  // Removes the node of the lock, at any time: tokens are the ensemble's.
  void forget(const Forgetting& what, Backend::Handler<std::vector<std::string>> done);

 private:
  const Options& options_;
  Requests& requests_;
  Queries& queries_;
};

}  // namespace dlock::zookeeper

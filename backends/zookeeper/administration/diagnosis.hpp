// Checks for dlock doctor: the servers' reports on themselves, the session, the nodes above the locks, and the client's
// rights there.
#pragma once

#include <vector>

#include <dlock/spi/backend.hpp>

#include "backends/zookeeper/administration/four_letter.hpp"
#include "backends/zookeeper/administration/queries.hpp"
#include "backends/zookeeper/nodes/parents.hpp"
#include "backends/zookeeper/nodes/removals.hpp"
#include "backends/zookeeper/nodes/requests.hpp"
#include "backends/zookeeper/options.hpp"

namespace dlock::zookeeper {

// The parts of a client that the checks use.
struct Patient {
  Executor& executor;
  const Options& options;
  Requests& requests;
  Parents& parents;
  Removals& removals;
};

// Answers within the response timeout, with or without a session. Removes what it creates, later if necessary. In tasks
// only.
void diagnose(Queries& queries, const ServerAsker& ask, const Patient& patient,
              Backend::Handler<std::vector<Finding>> done);

}  // namespace dlock::zookeeper

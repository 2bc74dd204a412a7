// Checks for dlock doctor: the servers, by what they report of themselves; the session; the place of the locks, and the
// client's rights there.
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

// Answers within the response timeout, with or without a session. Removes what it creates, if need be later. In tasks
// only.
void diagnose(Queries& queries, const ServerAsker& ask, const Patient& patient,
              Backend::Handler<std::vector<Finding>> done);

}  // namespace dlock::zookeeper

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

// In tasks only.
class Diagnosis {
 public:
  Diagnosis(Executor& executor, const Options& options, Requests& requests, Parents& parents, Removals& removals,
            Queries& queries, ServerAsker ask)
      : executor_(executor),
        options_(options),
        requests_(requests),
        parents_(parents),
        removals_(removals),
        queries_(queries),
        ask_(std::move(ask)) {}

  // Answers with or without a session. Removes what it creates, if need be later.
  void run(Backend::Handler<std::vector<Finding>> done);

 private:
  class Examination;

  Executor& executor_;
  const Options& options_;
  Requests& requests_;
  Parents& parents_;
  Removals& removals_;
  Queries& queries_;
  const ServerAsker ask_;
};

}  // namespace dlock::zookeeper

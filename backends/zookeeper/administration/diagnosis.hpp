// Looks for what endangers locks: the servers and what they tell about themselves, the session, the place of the locks
// and our rights there.
#pragma once

#include <functional>
#include <list>
#include <memory>
#include <vector>

#include <dlock/spi/backend.hpp>

#include "backends/zookeeper/administration/four_letter.hpp"
#include "backends/zookeeper/connection/session.hpp"
#include "backends/zookeeper/nodes/parents.hpp"
#include "backends/zookeeper/nodes/removals.hpp"
#include "backends/zookeeper/options.hpp"

namespace dlock::zookeeper {

// Asks a server about itself; destroying what is returned gives up the answer. Tests have their own.
using ServerAsker =
    std::function<std::shared_ptr<void>(const Host& host, TimePoint deadline, FourLetterQuestion::Handler done)>;
[[nodiscard]] ServerAsker ask_over_tcp(Executor& executor);

// In tasks only.
class Diagnosis {
 public:
  Diagnosis(Executor& executor, const Options& options, Session& session, Parents& parents, Removals& removals,
            ServerAsker asker);
  ~Diagnosis();

  // Answers within the response timeout, session or not. What it makes it removes, if need be later.
  void run(Backend::Handler<std::vector<Finding>> done);
  // To be called by the session's user.
  void session_ready();
  void session_refused(const Failure& why);

 private:
  class Examination;

  Executor& executor_;
  const Options& options_;
  Session& session_;
  Parents& parents_;
  Removals& removals_;
  const ServerAsker asker_;
  std::list<std::shared_ptr<Examination>> running_;
};

}  // namespace dlock::zookeeper

// strategy=for-update and advisory: while the server keeps a statement waiting for a lock, the statement keeps a
// snapshot, and CREATE INDEX CONCURRENTLY and its like wait for the end of all older ones. Where it is the lock's
// holder that runs them, each would wait for the other until the slice ends. So a client with waiters in the server
// asks now and then whether a transaction waits so, and if one does, its own waits end and begin anew.
#pragma once

#include <chrono>
#include <functional>
#include <set>
#include <string>

#include <dlock/spi/executor.hpp>
#include <dlock/spi/lifetime.hpp>

#include "backends/postgres/session_locks/waits.hpp"
#include "backends/postgres/sql/connection.hpp"

namespace dlock::postgres {

// In tasks only.
class SnapshotWatch {
 public:
  // ask: sends a query where nothing delays it. Its handler is called once, never inside the call, unless this is
  // destroyed first.
  SnapshotWatch(Executor& executor, Waits& waits, std::function<void(Query query)> ask);
  // A wait began.
  void began();

 private:
  void look_in(std::chrono::nanoseconds pause);
  void look();
  void answered(const Outcome& outcome, const Results& results);

  Executor& executor_;
  Waits& waits_;
  const std::function<void(Query)> ask_;
  const Statement question_;
  std::set<std::string> seen_;  // transactions that waited when this was last asked
  bool asking_ = false;
  Timer timer_;
  Lifetime lifetime_;
};

}  // namespace dlock::postgres

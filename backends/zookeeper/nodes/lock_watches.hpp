// Watches of locks: of a lock's node, or of the queue below it. A watch that has fired is set again.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include <dlock/spi/backend.hpp>
#include <dlock/spi/executor.hpp>

#include "backends/zookeeper/connection/watches.hpp"
#include "backends/zookeeper/nodes/requests.hpp"

namespace dlock::zookeeper {

// In tasks only. Outlives the watches that it makes.
class LockWatches {
 public:
  enum class What {
    node,   // the lock's node: its creation, removal or change
    queue,  // the children of the lock's node, and its creation
  };

  LockWatches(Executor& executor, Requests& requests, Watches& watches) noexcept
      : executor_(executor), requests_(requests), watches_(watches) {}

  // As in Backend. A query sent after a call of `changed` misses nothing that the next call would not report.
  [[nodiscard]] std::unique_ptr<Watch> watch(What what, std::string path, std::function<void()> changed);
  [[nodiscard]] bool empty() const noexcept { return watching_.empty(); }

  void session_ready();

 private:
  class LockWatch;

  Executor& executor_;
  Requests& requests_;
  Watches& watches_;
  std::uint64_t last_id_ = 0;
  std::map<std::uint64_t, LockWatch*> watching_;  // in the order of their calls
};

}  // namespace dlock::zookeeper

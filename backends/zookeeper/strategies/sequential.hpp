// strategy=sequential and sequential-herd: an acquire is a place in a queue of ephemeral sequential nodes, and the
// lowest number holds the lock.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include <dlock/spi/backend.hpp>

#include "backends/zookeeper/connection/watches.hpp"
#include "backends/zookeeper/nodes/holds.hpp"
#include "backends/zookeeper/nodes/parents.hpp"
#include "backends/zookeeper/nodes/removals.hpp"
#include "backends/zookeeper/nodes/requests.hpp"
#include "backends/zookeeper/options.hpp"
#include "backends/zookeeper/strategies/queue_walk.hpp"
#include "backends/zookeeper/strategies/recent_names.hpp"

namespace dlock::zookeeper {

class QueueContention;

// In tasks only. Outlives the contentions that it makes.
class Sequential {
 public:
  Sequential(BackendHost& host, const Options& options, Requests& requests, Watches& watches, Parents& parents,
             Removals& tombstones, Holds& holds);
  ~Sequential();

  [[nodiscard]] std::unique_ptr<Contention> contend(const LockRequest& request, GrantSink& sink);
  // No contention exists.
  [[nodiscard]] bool unused() const noexcept { return contentions_.empty(); }
  // A contention for the name exists.
  [[nodiscard]] bool contends(const std::string& name) const { return contended_.contains(name); }

  void session_ready();
  void session_suspended(const Failure& why);
  void session_lost(const Failure& why);

 private:
  friend class QueueContention;

  void forget(std::uint64_t id, const std::string& name);
  // Of a lock, once.
  void warn_of_unknown_child(const std::string& name, const std::string& lock_path, const std::string& child);

  BackendHost& host_;
  const Options& options_;
  Requests& requests_;
  Watches& watches_;
  Parents& parents_;
  Removals& tombstones_;
  Holds& holds_;
  std::uint64_t next_id_ = 0;
  std::map<std::uint64_t, QueueContention*> contentions_;   // in the order of their acquires, so that they queue in it
  std::unordered_map<std::string, std::size_t> contended_;  // how often each name is
  RecentNames busy_;
  RecentNames refused_;  // because of what is in their queue
  Failure trouble_;      // why no session stands, once it is known
  std::set<std::string> warned_of_;
};

}  // namespace dlock::zookeeper

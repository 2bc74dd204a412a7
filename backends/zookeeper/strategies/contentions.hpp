// The acquires of a session, by the client's strategy: a place in a queue of ephemeral sequential nodes, whose lowest
// number holds the lock (queue_contention.hpp), or one ephemeral node, whose creator holds it
// (ephemeral_contention.hpp).
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <set>
#include <string>
#include <unordered_map>

#include <dlock/spi/backend.hpp>
#include <dlock/spi/waiter.hpp>

#include "backends/zookeeper/connection/watches.hpp"
#include "backends/zookeeper/nodes/holds.hpp"
#include "backends/zookeeper/nodes/parents.hpp"
#include "backends/zookeeper/nodes/removals.hpp"
#include "backends/zookeeper/nodes/requests.hpp"
#include "backends/zookeeper/options.hpp"
#include "backends/zookeeper/strategies/recent_names.hpp"

namespace dlock::zookeeper {

// In tasks only. Outlives the contentions that it makes.
class Contentions final : private SessionWaiters {
 public:
  Contentions(BackendHost& host, const Options& options, Requests& requests, Watches& watches, Parents& parents,
              Removals& removals, Holds& holds);

  [[nodiscard]] std::unique_ptr<Contention> contend(const LockRequest& request, GrantSink& sink);
  // No contention exists.
  [[nodiscard]] bool unused() const noexcept { return empty(); }
  // A contention for the name exists.
  [[nodiscard]] bool contends(const std::string& name) const { return contended_.contains(name); }

  using SessionWaiters::session_lost;
  using SessionWaiters::session_ready;
  using SessionWaiters::session_suspended;

 private:
  friend class NodeContention;
  friend class QueueContention;
  friend class EphemeralContention;

  [[nodiscard]] bool session_usable() const override { return requests_.ready(); }
  void want_session() override { requests_.session().want(); }
  [[nodiscard]] Failure session_problem() const override;
  [[nodiscard]] std::chrono::nanoseconds session_lease() const override {
    return requests_.session().granted_timeout();
  }
  [[nodiscard]] TimePoint session_valid_until() const override { return requests_.session().valid_until(); }

  void forget(const std::string& name);
  // Warns once for each lock.
  void warn_of_unknown_child(const std::string& name, const std::string& lock_path, const std::string& child);

  BackendHost& host_;
  const Options& options_;
  Requests& requests_;
  Watches& watches_;
  Parents& parents_;
  Removals& removals_;
  Holds& holds_;
  std::unordered_map<std::string, std::size_t> contended_;  // how often each name is
  RecentNames busy_;
  RecentNames refused_;  // because of their queues
  std::set<std::string> warned_of_;
};

}  // namespace dlock::zookeeper

// strategy=ephemeral, one acquire: the lock's node itself is ephemeral, and creating it is acquiring the lock. A client
// that finds it watches it, and retries when it is removed.
//
// The data of the node ends with the owner id, so that a client knows the node of a create that was not answered.
//
// The other strategies' nodes are children of a node that here can have none, so neither takes a lock of the other for
// free.
#pragma once

#include "backends/zookeeper/strategies/node_contention.hpp"

namespace dlock::zookeeper {

class EphemeralContention final : public NodeContention {
 public:
  EphemeralContention(Contentions& client, const LockRequest& request, GrantSink& sink);
  ~EphemeralContention() override { cancel(); }

 private:
  void resume() override;
  void check() override { query(); }
  void create_node() override;
  void placed(const Handle::Created& /*node*/) override { grant(); }
  void not_created(const Outcome& outcome) override;

  void query(bool behind_create = false);
  void on_reply(const Outcome& outcome, const Handle::Node& node, bool watched);
  [[nodiscard]] bool refused(const Handle::Node& node);
};

}  // namespace dlock::zookeeper

// strategy=ephemeral, one acquire: the lock's node itself is ephemeral; creating it is acquiring the lock, and
// everybody who found it there watches it and tries again when it goes.
//
// The data of the node ends with the owner id, so that a client knows the node of a create that was not answered.
//
// Where a queue of the other strategies has its children, this has a node that can have none, so the two never take
// each other's place for free.
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

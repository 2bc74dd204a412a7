// The locks that this client holds.
#pragma once

#include "backends/common/session_holds.hpp"
#include "backends/zookeeper/connection/watches.hpp"
#include "backends/zookeeper/nodes/removals.hpp"
#include "backends/zookeeper/nodes/requests.hpp"

namespace dlock::zookeeper {

// By their nodes. In tasks only.
class Holds final : public common::SessionHolds<OwnNode, Watches::Interest> {
 public:
  Holds(BackendHost& host, Requests& requests, Watches& watches, Removals& removals);
  ~Holds();

  // The client holds a lock. watched: its node is already watched, so no query is needed.
  void add(const Grant& grant, OwnNode node, bool watched);

  void session_alive(TimePoint valid_until);

 private:
  void look(const OwnerId& owner, Hold& hold) override;
  void remove(const OwnerId& owner, OwnNode node) override;
  void watch(const OwnerId& owner, Hold& hold);
  void looked(const OwnerId& owner, const Outcome& outcome, const Stat& stat);

  Requests& requests_;
  Watches& watches_;
  Removals& removals_;
};

}  // namespace dlock::zookeeper

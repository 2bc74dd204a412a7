// strategy=ephemeral: the lock's node itself is ephemeral; creating it is acquiring the lock, and everybody who found
// it there watches it and tries again when it goes.
//
// The data of the node ends with the owner id, so that a client knows the node of a create that was not answered.
//
// Where a queue of the other strategies has its children, this has a node that can have none, so the two never take
// each other's place for free.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>

#include <dlock/spi/try_backend.hpp>

#include "backends/zookeeper/nodes/holds.hpp"
#include "backends/zookeeper/nodes/parents.hpp"
#include "backends/zookeeper/nodes/removals.hpp"
#include "backends/zookeeper/nodes/requests.hpp"
#include "backends/zookeeper/options.hpp"
#include "backends/zookeeper/strategies/recent_names.hpp"

namespace dlock::zookeeper {

// Under the ready-made contention of TryBackend. In tasks only.
class Ephemeral {
 public:
  using TryHandler = TryBackend::TryHandler;

  Ephemeral(BackendHost& host, const Options& options, Requests& requests, Parents& parents, Removals& removals,
            Holds& holds);
  ~Ephemeral();

  // As in TryBackend.
  void try_acquire(const LockRequest& request, TryHandler done);
  void abandon(const LockRequest& request);
  // No try is in progress.
  [[nodiscard]] bool unused() const noexcept { return attempts_.empty(); }

  void session_ready();
  void session_suspended(const Failure& why);
  void session_lost(const Failure& why);

 private:
  struct Attempt;
  using AttemptId = std::uint64_t;

  [[nodiscard]] Attempt* find(AttemptId id) const;
  void begin(AttemptId id);
  void look(AttemptId id, bool first);
  void looked(AttemptId id, const Outcome& outcome, const Handle::Node& node);
  void create(AttemptId id);
  void created(AttemptId id, const Outcome& outcome, const Handle::Created& node);
  void make_parents(AttemptId id);
  void again(AttemptId id);
  [[nodiscard]] bool may_repeat(AttemptId id);

  void grant(AttemptId id, const Stat& stat);
  void busy(AttemptId id);
  void fail(AttemptId id, Failure why) {
    answer(id, {.status = TryOutcome::Status::failed, .failure = std::move(why)});
  }
  void no_answer(AttemptId id, const Failure& why);
  void answer(AttemptId id, TryOutcome outcome);

  BackendHost& host_;
  const Options& options_;
  Requests& requests_;
  Parents& parents_;
  Removals& removals_;
  Holds& holds_;
  AttemptId next_id_ = 0;
  std::unordered_map<AttemptId, std::unique_ptr<Attempt>> attempts_;
  RecentNames busy_;
};

}  // namespace dlock::zookeeper

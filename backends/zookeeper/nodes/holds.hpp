// The locks that this client holds: kept as long as the session is, and looked after in case that somebody else removes
// their nodes.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include <dlock/backend.hpp>

#include "backends/zookeeper/connection/watches.hpp"
#include "backends/zookeeper/nodes/requests.hpp"
#include "backends/zookeeper/nodes/tombstones.hpp"

namespace dlock::zookeeper {

// In tasks only.
class Holds {
 public:
  Holds(BackendHost& host, Requests& requests, Watches& watches, Tombstones& tombstones);
  ~Holds();

  // A lock is ours, which is known now. watched: its node is watched already, so that nothing need be asked.
  void add(const Grant& grant, OwnNode node, bool watched);
  // It is to be released: no more is told about it. nullopt: it is gone.
  [[nodiscard]] std::optional<OwnNode> take(const OwnerId& owner);
  [[nodiscard]] bool contains(std::string_view path, std::int64_t created) const;
  [[nodiscard]] bool contains(const OwnerId& owner) const { return holds_.contains(owner); }
  [[nodiscard]] bool empty() const noexcept { return holds_.empty(); }

  void session_alive(TimePoint valid_until);
  void session_lost(const Failure& why);

 private:
  struct Hold;
  struct Due {
    TimePoint at;
    OwnerId owner;
  };

  [[nodiscard]] static std::string called(const Hold& hold);
  [[nodiscard]] Hold* find(const OwnerId& owner) const;
  void watch(const OwnerId& owner, Hold& hold);
  void look_later(const OwnerId& owner, std::chrono::nanoseconds pause);
  void look_at_due();
  void look(const OwnerId& owner);
  void looked(const OwnerId& owner, const Outcome& outcome, const Stat& stat);
  void lose(const OwnerId& owner, Failure why);

  BackendHost& host_;
  Requests& requests_;
  Watches& watches_;
  Tombstones& tombstones_;
  std::unordered_map<OwnerId, std::unique_ptr<Hold>> holds_;
  TimePoint told_ = TimePoint::min();
  std::deque<Due> due_;  // soon to be looked at, the first one first
  Timer timer_;
};

}  // namespace dlock::zookeeper

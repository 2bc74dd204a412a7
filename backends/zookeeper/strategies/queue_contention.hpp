// One acquire in the queue: strategy=sequential and sequential-herd.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "backends/zookeeper/strategies/node_contention.hpp"
#include "backends/zookeeper/strategies/queue_walk.hpp"

namespace dlock::zookeeper {

// Its node's way to the front.
class QueueContention final : public NodeContention {
 public:
  QueueContention(Contentions& client, const LockRequest& request, GrantSink& sink);
  ~QueueContention() override { cancel(); }

 private:
  using Next = QueueWalk::Next;

  void resume() override;
  void woken() override { execute(walk_.changed()); }
  void check() override { execute(walk_.check()); }

  // --- Getting a place ---
  void look_before_creating();
  void create_node() override;
  void placed(const Handle::Created& node) override;
  void not_created(const Outcome& refusal) override;
  void find_node();
  void found_node(const std::string& name, const Stat& stat);
  // --- In the queue ---
  void list(bool watched);
  void send_list(bool watched);
  void listed(const Outcome& outcome, const std::vector<std::string>& children);
  void unless_semaphore(std::function<void()> go_on);
  void execute(QueueWalk::Step step);
  void watch(const std::string& node);
  void compare_czxid(const std::string& node);
  void recheck_predecessor(const std::string& node);
  void recheck_own();
  void announce();
  void refuse(Failure why);
  void node_removed();

  [[nodiscard]] std::optional<Queue> judge(const std::vector<std::string>& children);
  [[nodiscard]] std::string path_of(const std::string& node) const { return own_.lock_path + "/" + node; }

  const Claim claim_;
  const bool herd_;
  QueueWalk walk_;
  bool predecessor_there_ = false;  // answered before the query of the own node
  bool list_watched_ = false;       // the list in flight
};

}  // namespace dlock::zookeeper

// One acquire in the queue: its node, from the create to the grant or to giving up, and its way to the front.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <dlock/spi/waiter.hpp>

#include "backends/zookeeper/strategies/queue_walk.hpp"
#include "backends/zookeeper/strategies/sequential.hpp"

namespace dlock::zookeeper {

//   our node | is
//   ---------+-----------------------------------------------------------------
//   none     | not there
//   creating | being created; the answer is under way
//   unknown  | there or not, because the answer was lost: find_node() finds out
//   there    | in the queue
class QueueContention final : public SessionWaiter {
 public:
  QueueContention(Sequential& client, const LockRequest& request, GrantSink& sink);
  ~QueueContention() override;

 private:
  using Next = QueueWalk::Next;
  enum class Node { none, creating, unknown, there };
  // Shared with the answer of the create, which may come after the acquire was given up.
  struct Creation {
    std::optional<Removals::Id> removal;
  };

  void resume() override;
  void woken() override { execute(walk_.changed()); }
  void check() override { execute(walk_.check()); }
  void give_up() override { remove_node(); }
  void place_lost() override { remove_node(); }
  void entered(Stage stage) override {
    if (stage != Stage::waiting) watch_.reset();
  }

  // --- Getting a place ---
  void look_before_creating();
  void join();
  void create_node();
  void node_created(const Outcome& outcome, const Handle::Created& node);
  void placed(const std::string& node, const Stat& stat);
  void make_parents();
  void explain_refusal(const Failure& why);
  void find_node();
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
  void keep_waiting();
  void announce();
  void grant();
  // --- Ends and new beginnings ---
  void refuse(Failure why);
  void found_busy();
  void node_removed();
  // As soon as a server can be reached; if its create is in flight, once that is answered.
  void remove_node();
  void request_failed(const Outcome& outcome);
  void unanswered(const Failure& why);

  [[nodiscard]] std::optional<Queue> judge(const std::vector<std::string>& children);
  // The watch for the next request, in place of the one before; nullptr where none can be set.
  [[nodiscard]] Watches::Interest* new_watch(Watches::Kind kind, const std::string& path);
  [[nodiscard]] std::string path_of(const std::string& node) const { return lock_path_ + "/" + node; }
  [[nodiscard]] OwnNode own_node() const;

  Sequential& client_;
  Requests& requests_;
  const Claim claim_;
  const std::string lock_path_;
  const bool herd_;
  QueueWalk walk_;
  Node node_ = Node::none;
  std::string guid_;
  std::uint64_t epoch_ = 0;             // of the session that the node belongs to
  std::shared_ptr<Creation> creation_;  // while creating
  int parents_made_ = 0;
  bool predecessor_there_ = false;  // answered before our own node is
  bool list_watched_ = false;       // the list that is asked for
  std::unique_ptr<Watches::Interest> watch_;
};

}  // namespace dlock::zookeeper

// One acquire by a node of its own: the node, from the create to the grant or to giving up.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include <dlock/spi/waiter.hpp>

#include "backends/zookeeper/strategies/contentions.hpp"

namespace dlock::zookeeper {

//   our node | is
//   ---------+------------------------------------------------------
//   none     | not there
//   creating | being created; the answer is under way
//   unknown  | there or not, because the answer was lost
//   there    | there
class NodeContention : public SessionWaiter {
 protected:
  enum class Node { none, creating, unknown, there };

  NodeContention(Contentions& client, const LockRequest& request, GrantSink& sink);
  ~NodeContention() override { client_.forget(request().name); }

  // --- What a strategy implements ---

  // Called by create(), and again once it has created the missing parents.
  virtual void create_node() = 0;
  // Our node is there.
  virtual void placed(const Handle::Created& node) = 0;
  // It exists already, or cannot be created.
  virtual void not_created(const Outcome& outcome) = 0;

  // --- The node ---

  // path: below `above`.
  void create(const std::string& path, const std::string& data, NodeKind kind, const std::string& above);
  // As soon as a server is reachable; if the create is in flight, once that is answered.
  void remove_node();
  // The node exists, and it is this acquire's turn.
  void grant();

  // --- Waiting, and ends ---

  // Until what is watched changes.
  void keep_waiting();
  void found_busy();
  void request_failed(const Outcome& outcome);
  void unanswered(const Failure& why);
  // Other clients keep changing the node. False, after a failure: too often.
  [[nodiscard]] bool may_repeat(const std::string& path, const char* what);
  // The watch for the next request, which replaces the last one; nullptr if none can be set.
  [[nodiscard]] Watches::Interest* new_watch(Watches::Kind kind, const std::string& path);

  void give_up() override { remove_node(); }
  void place_lost() override { remove_node(); }
  void entered(Stage stage) override {
    if (stage != Stage::waiting) watch_.reset();
    if (stage != Stage::requesting) repeats_ = 0;
  }

  Contentions& client_;
  Requests& requests_;
  Node node_ = Node::none;
  OwnNode own_;

 private:
  // Shared with the handler of the create, which may be called after the acquire was given up.
  struct Creation {
    std::optional<Removals::Id> removal;
  };

  void created(const Outcome& outcome, const Handle::Created& node, const std::string& above);
  void make_parents(const std::string& path);

  std::shared_ptr<Creation> creation_;  // while creating
  int repeats_ = 0;
  std::unique_ptr<Watches::Interest> watch_;
};

}  // namespace dlock::zookeeper

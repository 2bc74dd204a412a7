// The queue at a lock's node, and one waiter's way to its front. No I/O: answers of the server go in, the next requests
// come out.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <dlock/error.hpp>

#include "backends/zookeeper/nodes/node_name.hpp"

namespace dlock::zookeeper {

// The children of a lock's node, parsed. Refers to their names, which must outlive it.
struct Queue {
  struct Member {
    std::int64_t sequence;
    std::string_view node;
    Mode mode = Mode::exclusive;
    std::uint32_t permits = 1;
  };
  std::vector<Member> members;  // in no particular order
  std::string_view unknown;     // a child that is no lock's, if there is one
  bool semaphore = false;       // there are children of Curator's semaphore; whether it is in use must still be queried
  // Why this queue must not be used: it has a lock of a different layout or kind, or its numbers are used up.
  std::optional<Failure> problem;

  // Members that hold the lock, or will once they have checked, the first one first.
  [[nodiscard]] std::vector<Member> holders() const;
  // Of the smallest number; nullptr: it is empty.
  [[nodiscard]] const Member* first() const;
};

[[nodiscard]] Failure foreign_child(const std::string& lock_path, std::string_view child, std::string_view layout);

[[nodiscard]] Queue judge_queue(Layout layout, const std::string& lock_path, const std::vector<std::string>& children,
                                LockKind kind = LockKind::lock);

// Whose turn it is:
//
//   claim    | waits for             | until then watches
//   ---------+-----------------------+---------------------------------------------------------------------------
//   lock     | all before it         | the nearest of them
//   writer   | all before it         | the nearest of them
//   reader   | all writers before it | the nearest of them
//   permit   | as many as are before | the first in line, behind as many as there are permits: all children. Others:
//            | it to be fewer than   | the data of the nearest before it, into which the one that enters says so
//            | there are permits     |
//
// A waiter lists the queue once, then watches the node before it, because new nodes only come behind. If it waits for
// that node only, then after a change it queries just that node and its own, however long the queue is behind it.
// Otherwise it lists the queue again: in a queue that moves in order, all others before it are gone as well, and
// finding that out one by one would cost a request for each. A writer always lists again: a client that held Curator's
// lock to write continues to read it by a new node with the old number. A periodic check queries only the predecessor,
// or every waiter would list a long queue in which nothing changes.
//
// For permits, the waiter behind a client that is granted one may have seen that client wait. So a waiter whose turn
// has come, with others behind it, marks its node as granted before it takes the permit.
//
// The first in line decides the number of permits. Waiters with a different number will be refused once they check,
// unless the first ones leave before: so those behind such a node wait until it is deleted or marked as granted.
class QueueWalk {
 public:
  enum class Next {
    list,                 // the children
    watch_list,           // the same, with a watch
    watch,                // `node`, which is before this waiter
    compare_czxid,        // of `node`, which has the same number: the earlier transaction is first
    recheck_predecessor,  // `node`, again with a watch, and the own node
    recheck_own,          // the own node, which must still exist
    wait,                 // for a change of what is watched
    announce,             // mark the own node as granted, for those behind it; then grant
    grant,                // it is this waiter's turn
    refuse,               // a different number of permits is in use: `permits`
    start_over,           // the own node is gone
  };
  struct Step {
    Next next;
    std::string node = {};
    std::uint32_t permits = 0;
  };

  // herd: every waiter watches all children.
  explicit QueueWalk(const Claim& claim = {}, bool herd = false) noexcept : claim_(claim), herd_(herd) {}

  // The own node exists.
  void placed(std::string node, QueuePosition position);
  [[nodiscard]] const std::string& node() const noexcept { return node_; }
  [[nodiscard]] std::int64_t created() const noexcept { return position_.created; }

  // In a queue that may be used: whether a new last member would be granted. grant, wait or refuse.
  [[nodiscard]] Step behind(const Queue& queue) const;
  // The same for the own node. watched: the list was read with a watch.
  [[nodiscard]] Step listed(const Queue& queue, bool watched = false);
  // The transaction of the node to compare; nullopt: it is gone.
  [[nodiscard]] Step compared(std::optional<std::int64_t> created);
  // What is watched has changed.
  [[nodiscard]] Step changed() const;
  // A periodic check.
  [[nodiscard]] Step check() const;
  // The node to watch is gone.
  [[nodiscard]] Step gone() const;
  // The node to watch exists, with this data.
  [[nodiscard]] Step seen(std::string_view data) const;
  // After recheck_predecessor or recheck_own: whether the predecessor still exists, and the transaction of the own
  // node; nullopt: it is gone.
  [[nodiscard]] Step rechecked(bool before_there, std::optional<std::int64_t> created) const;

  // The data of a node that is marked as granted.
  [[nodiscard]] static std::string entered(std::string_view data);

 private:
  // Whether a node before this one makes it wait.
  [[nodiscard]] bool blocks(Mode mode) const noexcept;
  [[nodiscard]] std::size_t capacity() const noexcept {
    return claim_.kind == LockKind::semaphore ? claim_.permits : 1;
  }
  // Whether this waiter waits for its predecessor only, and no other node can come before it.
  [[nodiscard]] bool only_one_before() const noexcept;
  [[nodiscard]] Step list_again(std::size_t before) const;
  [[nodiscard]] Step decide();

  const Claim claim_;
  const bool herd_;
  std::string node_;
  QueuePosition position_;
  // Of the last list.
  bool watched_ = false;
  bool others_behind_ = false;
  std::string stray_;                             // before this waiter, with a different number of permits
  std::vector<std::string> rivals_;               // with the same number, not compared yet
  std::optional<QueuePosition> before_position_;  // of the nearest before this waiter
  std::string before_;                            // its name
  std::size_t count_before_ = 0;
};

}  // namespace dlock::zookeeper

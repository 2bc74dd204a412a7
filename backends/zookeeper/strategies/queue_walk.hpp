// The queue at a lock's node, and the way of one waiter to its front. No I/O: what the server said goes in, what to ask
// next comes out.
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

// The children of a lock's node, judged. Looks at the names it was made of, which must stay where they are.
struct Queue {
  struct Member {
    std::int64_t sequence;
    std::string_view node;
    Mode mode = Mode::exclusive;
    std::uint32_t permits = 1;
  };
  std::vector<Member> members;  // in no particular order
  std::string_view unknown;     // a child that is no lock's, if there is one
  bool semaphore = false;       // children of Curator's semaphore; whether it is in use is still to be asked
  // Why this queue must not be used: a lock of another layout or kind is in it, or its numbers are used up.
  std::optional<Failure> problem;

  // Those who hold the lock by now, or will as soon as they look, the first one first.
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
// A waiter asks for the list once, then watches the node before it, because new nodes only come behind. When that one
// changes and was the only one to wait for, it and our own node are all there is to look at, however long the queue is
// behind us. Otherwise the list is asked for again: in a queue that moves in order all the others before us are gone as
// well, and finding that out one by one would cost a request for each. So does a writer in any case: one who held
// Curator's lock to write goes on to read it by a new node with the old number. A check that nothing was missed looks
// only at the one before us, or every waiter would list a long queue in which nothing changes.
//
// Of those who wait for permits, the one behind a client that enters may have seen that one wait. So a waiter whose
// turn has come, with others behind it, says so in its node before it takes the turn.
//
// The first in line says how many permits there are. Others with another number will be refused as soon as they
// look, unless the first ones go before: so until such a one has gone, or says that it is in, those behind it wait.
class QueueWalk {
 public:
  enum class Next {
    list,                 // the children
    watch_list,           // the same, with a watch
    watch,                // `node`, which is before us
    compare_czxid,        // of `node`, which has our number: the earlier transaction is first
    recheck_predecessor,  // `node`, again with a watch, and our own
    recheck_own,          // our own node, which must still be there
    wait,                 // for a change of what is watched
    announce,             // that we are in, to those behind us; then granted
    grant,                // it is our turn
    refuse,               // another number of permits is in use: `permits`
    start_over,           // our node is gone
  };
  struct Step {
    Next next;
    std::string node = {};
    std::uint32_t permits = 0;
  };

  // herd: every waiter watches all children.
  explicit QueueWalk(const Claim& claim = {}, bool herd = false) noexcept : claim_(claim), herd_(herd) {}

  // Our node stands.
  void placed(std::string node, QueuePosition position);
  [[nodiscard]] const std::string& node() const noexcept { return node_; }
  [[nodiscard]] std::int64_t created() const noexcept { return position_.created; }

  // Of a queue that may be used: what a new last member would find. grant, wait or refuse.
  [[nodiscard]] Step behind(const Queue& queue) const;
  // The same as our node finds it. watched: the list was asked for with a watch.
  [[nodiscard]] Step listed(const Queue& queue, bool watched = false);
  // The transaction of the node that was to be compared; nullopt: it is gone.
  [[nodiscard]] Step compared(std::optional<std::int64_t> created);
  // What is watched has changed.
  [[nodiscard]] Step changed() const;
  // It is time to look whether it has.
  [[nodiscard]] Step check() const;
  // What was to be watched is gone.
  [[nodiscard]] Step gone() const;
  // What was to be watched is there, with this data.
  [[nodiscard]] Step seen(std::string_view data) const;
  // After recheck_predecessor or recheck_own: whether the one before us is still there, and the transaction of our own
  // node; nullopt: it is gone.
  [[nodiscard]] Step rechecked(bool before_there, std::optional<std::int64_t> created) const;

  // What a node's data becomes when its owner has entered after others came behind it.
  [[nodiscard]] static std::string entered(std::string_view data);

 private:
  // Whether we wait for it, if it comes before us.
  [[nodiscard]] bool blocks(Mode mode) const noexcept;
  [[nodiscard]] std::size_t capacity() const noexcept {
    return claim_.kind == LockKind::semaphore ? claim_.permits : 1;
  }
  // That the node before us is all that we wait for, and that no other can come before us.
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
  std::string stray_;                             // before us, with another number of permits than the first one's
  std::vector<std::string> rivals_;               // with our number, not compared yet
  std::optional<QueuePosition> before_position_;  // of the nearest before us
  std::string before_;                            // its name
  std::size_t count_before_ = 0;
};

}  // namespace dlock::zookeeper

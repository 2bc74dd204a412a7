// The queue at a lock's node, and the way of one waiter to its front. No I/O: what the server said goes in, what to ask
// next comes out.
#pragma once

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
  };
  std::vector<Member> members;  // in no particular order
  std::string_view unknown;     // a child that is no lock's, if there is one
  bool semaphore = false;       // children of Curator's semaphore; whether anybody is in it is still to be asked
  // Why this queue must not be used: a lock of another layout is in it, or its numbers are used up.
  std::optional<Failure> problem;

  // Where there are members: one that no other comes before by its number.
  [[nodiscard]] const Member& first() const;
};

[[nodiscard]] Failure foreign_child(const std::string& lock_path, std::string_view child, std::string_view layout);

[[nodiscard]] Queue judge_queue(Layout layout, const std::string& lock_path, const std::vector<std::string>& children);

// A waiter asks for the list once, then watches the node before it, because new nodes only come behind. When that one
// changes and was the only one before us, it and our own node are all there is to look at, however long the queue is
// behind us. Otherwise the list is asked for again: in a queue that moves in order all the others before us are gone as
// well, and finding that out one by one would cost a request for each. Whoever only makes sure that nothing was missed
// looks at the one before us, or a long queue that stands still would be listed by everybody in it.
class QueueWalk {
 public:
  enum class Next {
    list,        // the children
    watch,       // `node`, which is before us
    weigh,       // ask for `node`: it has our number, and its transaction says who is first
    verify,      // `node`, again with a watch, and our own
    confirm,     // our own node, which must still be there
    wait,        // for a change of what is watched
    grant,       // we are first
    start_over,  // our node is gone
  };
  struct Step {
    Next next;
    std::string node = {};
  };

  // Our node stands.
  void placed(std::string node, QueuePosition position);
  [[nodiscard]] const std::string& node() const noexcept { return node_; }
  [[nodiscard]] std::int64_t created() const noexcept { return position_.created; }

  // Of a queue that may be used.
  [[nodiscard]] Step listed(const Queue& queue);
  // The transaction of the node that was to be weighed; nullopt: it is gone.
  [[nodiscard]] Step weighed(std::optional<std::int64_t> created);
  // What is watched has changed.
  [[nodiscard]] Step changed() const;
  // It is time to look whether it has.
  [[nodiscard]] Step check() const;
  // What was to be watched is gone.
  [[nodiscard]] Step gone() const;
  // After verify or confirm: whether the one before us is still there, and the transaction of our own node; nullopt: it
  // is gone.
  [[nodiscard]] Step verified(bool before_there, std::optional<std::int64_t> created) const;

 private:
  // Whether we wait for it.
  [[nodiscard]] bool blocks(const Queue::Member& other) const noexcept;
  [[nodiscard]] Step decide();

  std::string node_;
  QueuePosition position_;
  // Of the last list.
  std::vector<std::string> rivals_;               // with our number, not weighed yet
  std::optional<QueuePosition> before_position_;  // of the nearest before us
  std::string before_;                            // its name
  std::size_t count_before_ = 0;
};

}  // namespace dlock::zookeeper

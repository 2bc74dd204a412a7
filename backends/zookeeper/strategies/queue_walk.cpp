#include "backends/zookeeper/strategies/queue_walk.hpp"

#include <algorithm>
#include <utility>

#include "util/names.hpp"

namespace dlock::zookeeper {

Failure foreign_child(const std::string& lock_path, std::string_view child, std::string_view layout) {
  return {errc::protocol, "node " + util::quoted(child) + " below " + util::quoted(lock_path) +
                              " is in a layout that does not exclude ours: " + std::string(layout)};
}

Queue judge_queue(Layout layout, const std::string& lock_path, const std::vector<std::string>& children) {
  Queue queue;
  queue.members.reserve(children.size());
  for (const std::string& child : children) {
    const QueueNode parsed = parse_queue_node(layout, child);
    switch (parsed.kind) {
      case QueueNode::Kind::member:
        queue.members.push_back({parsed.sequence, child});
        if (is_poisoned(parsed.sequence)) {
          queue.problem = {errc::protocol, "the sequence numbers below " + util::quoted(lock_path) + " are used up (" +
                                               std::to_string(parsed.sequence) +
                                               "), so nobody can tell who is first; delete that node while nobody "
                                               "uses the lock, and it begins anew"};
        }
        break;
      case QueueNode::Kind::foreign:
        if (!queue.problem) queue.problem = foreign_child(lock_path, child, parsed.layout);
        break;
      case QueueNode::Kind::semaphore:
        queue.semaphore = true;
        break;
      case QueueNode::Kind::unknown:
        queue.unknown = child;
        break;
    }
  }
  return queue;
}

const Queue::Member& Queue::first() const {
  return *std::min_element(members.begin(), members.end(),
                           [](const Member& one, const Member& other) { return one.sequence < other.sequence; });
}

void QueueWalk::placed(std::string node, QueuePosition position) {
  node_ = std::move(node);
  position_ = position;
}

QueueWalk::Step QueueWalk::listed(const Queue& queue) {
  bool present = false;
  rivals_.clear();
  before_position_.reset();
  count_before_ = 0;
  std::string_view before;
  for (const Queue::Member& member : queue.members) {
    if (member.node == node_) {
      present = true;
    } else if (member.sequence == position_.sequence) {
      rivals_.emplace_back(member.node);
    } else if (blocks(member)) {
      ++count_before_;
      if (before_position_ && before_position_->sequence >= member.sequence) continue;
      before = member.node;
      before_position_ = {member.sequence, 0};
    }
  }
  before_ = before;
  if (!present) return {.next = Next::start_over};
  return decide();
}

// Locks are exclusive, so whoever has a lower number does.
bool QueueWalk::blocks(const Queue::Member& other) const noexcept {
  return other.sequence < position_.sequence;
}

QueueWalk::Step QueueWalk::weighed(std::optional<std::int64_t> created) {
  if (rivals_.empty()) return {.next = Next::list};
  std::string rival = std::move(rivals_.back());
  rivals_.pop_back();
  if (created) {
    const QueuePosition position{position_.sequence, *created};
    if (position < position_) {
      ++count_before_;
      if (!before_position_ || *before_position_ < position) {
        before_position_ = position;
        before_ = std::move(rival);
      }
    }
  }
  return decide();
}

QueueWalk::Step QueueWalk::changed() const {
  if (count_before_ != 1) return {.next = Next::list};
  return {.next = Next::verify, .node = before_};
}

QueueWalk::Step QueueWalk::check() const {
  return {.next = Next::watch, .node = before_};
}

QueueWalk::Step QueueWalk::gone() const {
  return {.next = count_before_ == 1 ? Next::confirm : Next::list};
}

QueueWalk::Step QueueWalk::verified(bool before_there, std::optional<std::int64_t> created) const {
  if (created != position_.created) return {.next = Next::start_over};
  return {.next = before_there ? Next::wait : Next::grant};
}

QueueWalk::Step QueueWalk::decide() {
  if (!rivals_.empty()) return {.next = Next::weigh, .node = rivals_.back()};
  if (count_before_ == 0) return {.next = Next::grant};
  return {.next = Next::watch, .node = before_};
}

}  // namespace dlock::zookeeper

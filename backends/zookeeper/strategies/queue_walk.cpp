#include "backends/zookeeper/strategies/queue_walk.hpp"

#include <algorithm>
#include <utility>

#include "util/names.hpp"

namespace dlock::zookeeper {

namespace {

constexpr std::string_view entered_mark = "\nheld";

}  // namespace

Failure foreign_child(const std::string& lock_path, std::string_view child, std::string_view layout) {
  return {errc::protocol, "node " + util::quoted(child) + " below " + util::quoted(lock_path) +
                              " has another layout, whose locks do not exclude ours: " + std::string(layout)};
}

Queue judge_queue(Layout layout, const std::string& lock_path, const std::vector<std::string>& children,
                  LockKind kind) {
  Queue queue;
  queue.members.reserve(children.size());
  for (const std::string& child : children) {
    const QueueNode parsed = parse_queue_node(layout, child, kind);
    switch (parsed.kind) {
      case QueueNode::Kind::member:
        queue.members.push_back({parsed.sequence, child, parsed.mode, parsed.permits});
        if (is_poisoned(parsed.sequence)) {
          queue.problem = {errc::protocol, "the sequence numbers below " + util::quoted(lock_path) + " are used up (" +
                                               std::to_string(parsed.sequence) +
                                               "), so the order of the waiters is unknown; delete that node while no "
                                               "client uses the lock, and the numbers start again"};
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

std::vector<Queue::Member> Queue::holders() const {
  std::vector<Member> all = members;
  if (all.empty()) return all;
  // For equal numbers, a writer's node is the older one.
  std::sort(all.begin(), all.end(), [](const Member& one, const Member& other) {
    return std::pair(one.sequence, one.mode) < std::pair(other.sequence, other.mode);
  });
  std::size_t count = std::min<std::size_t>(all.size(), all.front().permits);
  if (all.front().mode == Mode::shared) {
    const auto writes = [](const Member& member) { return member.mode == Mode::exclusive; };
    count = static_cast<std::size_t>(std::find_if(all.begin(), all.end(), writes) - all.begin());
  }
  all.resize(count, all.front());
  return all;
}

void QueueWalk::placed(std::string node, QueuePosition position) {
  node_ = std::move(node);
  position_ = position;
}

const Queue::Member* Queue::first() const {
  const auto found = std::ranges::min_element(members, {}, &Member::sequence);
  return found == members.end() ? nullptr : &*found;
}

QueueWalk::Step QueueWalk::behind(const Queue& queue) const {
  const Queue::Member* const first = queue.first();
  if (first != nullptr && first->permits != claim_.permits) return {.next = Next::refuse, .permits = first->permits};
  std::size_t before = 0;
  for (const Queue::Member& member : queue.members) {
    if (member.permits != claim_.permits) return {.next = Next::wait};
    if (blocks(member.mode)) ++before;
  }
  return {.next = before < capacity() ? Next::grant : Next::wait};
}

QueueWalk::Step QueueWalk::listed(const Queue& queue, bool watched) {
  bool present = false;
  watched_ = watched;
  others_behind_ = false;
  stray_.clear();
  rivals_.clear();
  before_position_.reset();
  count_before_ = 0;
  std::string_view before;
  for (const Queue::Member& member : queue.members) {
    if (member.node == node_) {
      present = true;
    } else if (member.sequence > position_.sequence) {
      others_behind_ = true;
    } else if (member.permits != claim_.permits) {
      if (member.sequence == queue.first()->sequence) return {.next = Next::refuse, .permits = member.permits};
      stray_ = member.node;
    } else if (!blocks(member.mode)) {
      continue;
    } else if (member.sequence == position_.sequence) {
      rivals_.emplace_back(member.node);
    } else {
      ++count_before_;
      if (before_position_ && before_position_->sequence >= member.sequence) continue;
      before = member.node;
      before_position_ = {member.sequence, 0};
    }
  }
  before_ = stray_.empty() ? before : stray_;
  if (!present) return {.next = Next::start_over};
  return decide();
}

bool QueueWalk::blocks(Mode mode) const noexcept {
  return claim_.mode == Mode::exclusive || mode == Mode::exclusive;
}

QueueWalk::Step QueueWalk::compared(std::optional<std::int64_t> created) {
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
  if (only_one_before()) return {.next = Next::recheck_predecessor, .node = before_};
  return list_again(count_before_ - 1);
}

QueueWalk::Step QueueWalk::check() const {
  if (watched_) return list_again(count_before_);
  return {.next = Next::watch, .node = before_};
}

QueueWalk::Step QueueWalk::gone() const {
  if (only_one_before()) return {.next = Next::recheck_own};
  return list_again(count_before_ - 1);
}

QueueWalk::Step QueueWalk::seen(std::string_view data) const {
  if (claim_.kind == LockKind::semaphore && data.ends_with(entered_mark)) return list_again(capacity());
  return {.next = Next::wait};
}

std::string QueueWalk::entered(std::string_view data) {
  return std::string(data) + std::string(entered_mark);
}

bool QueueWalk::only_one_before() const noexcept {
  const bool others_may_come = herd_ || claim_.kind == LockKind::semaphore ||
                               (claim_.kind == LockKind::read_write && claim_.mode == Mode::exclusive);
  return !others_may_come && count_before_ == 1;
}

// before: at most so many will be before this waiter.
QueueWalk::Step QueueWalk::list_again(std::size_t before) const {
  const bool watches_all = herd_ || (claim_.kind == LockKind::semaphore && before <= capacity());
  return {.next = watches_all ? Next::watch_list : Next::list};
}

QueueWalk::Step QueueWalk::rechecked(bool before_there, std::optional<std::int64_t> created) const {
  if (created != position_.created) return {.next = Next::start_over};
  return {.next = before_there ? Next::wait : Next::grant};
}

QueueWalk::Step QueueWalk::decide() {
  if (!rivals_.empty()) return {.next = Next::compare_czxid, .node = rivals_.back()};
  if (!stray_.empty()) return {.next = watched_ ? Next::wait : Next::watch, .node = stray_};
  if (count_before_ < capacity()) {
    return {.next = claim_.kind == LockKind::semaphore && others_behind_ ? Next::announce : Next::grant};
  }
  if (watched_) return {.next = Next::wait};
  if (claim_.kind == LockKind::semaphore && count_before_ == capacity()) return {.next = Next::watch_list};
  return {.next = Next::watch, .node = before_};
}

}  // namespace dlock::zookeeper

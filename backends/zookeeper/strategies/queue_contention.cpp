#include "backends/zookeeper/strategies/queue_contention.hpp"

#include <algorithm>
#include <utility>

#include "util/names.hpp"

namespace dlock::zookeeper {

QueueContention::QueueContention(Contentions& client, const LockRequest& request, GrantSink& sink)
    : NodeContention(client, request, sink),
      claim_{.kind = request.kind, .mode = request.mode, .permits = request.permits},
      herd_(request.wait && client.options_.strategy == Strategy::sequential_herd),
      walk_(claim_, herd_) {}

void QueueContention::resume() {
  if (node_ == Node::there) return list(herd_);
  if (node_ == Node::unknown) return find_node();
  const bool busy = !request().wait && client_.busy_.contains(own_.lock_path);
  if (busy || client_.refused_.contains(own_.lock_path)) return look_before_creating();
  create_node();
}

// --- Getting a place -------------------------------------------------------------------------------------------------

void QueueContention::look_before_creating() {
  start_request();
  requests_.children_synced(own_.lock_path,
                            on_answer([this](const Outcome& outcome, const std::vector<std::string>& children) {
                              if (outcome.problem != Problem::none && outcome.problem != Problem::no_node)
                                return request_failed(outcome);
                              const auto queue = judge(children);
                              if (!queue) return;
                              const QueueWalk::Step step = walk_.behind(*queue);
                              if (step.next == Next::refuse) return refuse(other_permits(request(), step.permits));
                              if (step.next == Next::wait && !request().wait) return found_busy();
                              const auto join = [this] {
                                if (may_send()) create_node();
                              };
                              if (queue->semaphore) return unless_semaphore(join);
                              join();
                            }));
}

void QueueContention::create_node() {
  client_.refused_.remove(own_.lock_path);
  own_.guid = guid_text(client_.options_.layout, client_.host_.new_owner_id());
  own_.path.clear();
  create(path_of(queue_node_prefix(client_.options_.layout, own_.guid, claim_)), request().holder,
         NodeKind::ephemeral_sequential, own_.lock_path);
  send_list(herd_);  // right after the create, so that the answer includes the new node
}

void QueueContention::placed(const Handle::Created& node) {
  const std::string name(last_component(node.path));
  own_.path = path_of(name);
  walk_.placed(name, {parse_queue_node(client_.options_.layout, name, claim_.kind).sequence, node.stat.created});
}

// The server refuses nodes below the lock's node: find out why.
void QueueContention::not_created(const Outcome& refusal) {
  const Failure& why = refusal.failure;
  if (refusal.problem != Problem::other || !requests_.ready()) return ended(why);
  requests_.get(own_.lock_path, on_answer([this, why](const Outcome& outcome, const Handle::Node& node) {
                  if (outcome.problem != Problem::none || node.stat.owner == 0) return ended(why);
                  ended({errc::protocol, "node " + util::quoted(own_.lock_path) +
                                             " is ephemeral: the lock is held with strategy=ephemeral, which cannot be "
                                             "mixed with a queue"});
                }));
}

void QueueContention::find_node() {
  start_request();
  // The create may have gone through a different server than this query.
  requests_.children_latest(
      own_.lock_path, on_answer([this](const Outcome& outcome, const std::vector<std::string>& children) {
        if (outcome.problem != Problem::none && outcome.problem != Problem::no_node) return request_failed(outcome);
        const auto ours = std::ranges::find_if(
            children, [this](const std::string& child) { return child.find(own_.guid) != std::string::npos; });
        if (ours == children.end()) {
          node_ = Node::none;  // and never will: this server refuses what was in flight at the other one
          return proceed();
        }
        if (!may_send()) return;
        requests_.get(path_of(*ours), on_answer([this, node = *ours](const Outcome& seen, const Handle::Node& answer) {
                        if (seen.problem == Problem::no_node) {
                          node_ = Node::none;
                          return proceed();
                        }
                        if (seen.problem != Problem::none) return request_failed(seen);
                        found_node(node, answer.stat);
                      }));
      }));
}

void QueueContention::found_node(const std::string& name, const Stat& stat) {
  node_ = Node::there;
  own_.created = stat.created;
  placed({name, stat});
  if (stat.owner == requests_.session().id()) return proceed();
  // It belongs to an earlier session, and is removed with that one, whatever happens to this session.
  remove_node();
  retry_later();
}

// --- In the queue ----------------------------------------------------------------------------------------------------

void QueueContention::list(bool watched) {
  if (!may_send()) return;
  start_request();
  send_list(watched);
}

void QueueContention::send_list(bool watched) {
  list_watched_ = watched;
  Watches::Interest* const watch = watched ? new_watch(Watches::Kind::children, own_.lock_path) : nullptr;
  requests_.children(own_.lock_path, watch,
                     on_answer([this](const Outcome& outcome, const std::vector<std::string>& children) {
                       listed(outcome, children);
                     }));
}

void QueueContention::listed(const Outcome& outcome, const std::vector<std::string>& children) {
  if (node_ != Node::there) return;  // the answer to the create failed, and decides
  if (outcome.problem == Problem::no_node) return node_removed();
  if (outcome.problem != Problem::none) return request_failed(outcome);
  const auto queue = judge(children);
  if (!queue) return;
  const QueueWalk::Step step = walk_.listed(*queue, list_watched_);
  if (queue->semaphore) return unless_semaphore([this, step] { execute(step); });
  execute(step);
}

// Goes on if no semaphore of Curator's at the lock's node is in use.
void QueueContention::unless_semaphore(std::function<void()> go_on) {
  if (!may_send()) return;
  requests_.occupied_semaphore(
      own_.lock_path, on_answer([this, go_on = std::move(go_on)](const Outcome& outcome, std::string_view occupied) {
        if (outcome.problem != Problem::none) return request_failed(outcome);
        if (!occupied.empty()) return refuse(foreign_child(own_.lock_path, occupied, semaphore_layout));
        go_on();
      }));
}

void QueueContention::execute(QueueWalk::Step step) {
  if (!may_send()) return;
  switch (step.next) {
    case Next::list:
      return list(herd_);
    case Next::watch_list:
      return request().wait ? list(true) : found_busy();
    case Next::watch:
      return request().wait ? watch(step.node) : found_busy();
    case Next::compare_czxid:
      return compare_czxid(step.node);
    case Next::recheck_predecessor:
      return recheck_predecessor(step.node);
    case Next::recheck_own:
      predecessor_there_ = false;
      return recheck_own();
    case Next::wait:
      return keep_waiting();
    case Next::announce:
      return announce();
    case Next::grant:
      return grant();
    case Next::refuse:
      return refuse(other_permits(request(), step.permits));
    case Next::start_over:
      return node_removed();
  }
}

void QueueContention::watch(const std::string& node) {
  start_request();
  requests_.get(path_of(node), new_watch(Watches::Kind::data, path_of(node)),
                on_answer([this](const Outcome& outcome, const Handle::Node& answer) {
                  if (outcome.problem == Problem::no_node) return execute(walk_.gone());
                  if (outcome.problem != Problem::none) return request_failed(outcome);
                  execute(walk_.seen(answer.data));
                }));
}

void QueueContention::compare_czxid(const std::string& node) {
  requests_.get(path_of(node), on_answer([this](const Outcome& outcome, const Handle::Node& answer) {
                  if (outcome.problem == Problem::none) return execute(walk_.compared(answer.stat.created));
                  if (outcome.problem == Problem::no_node) return execute(walk_.compared(std::nullopt));
                  request_failed(outcome);
                }));
}

// The predecessor's query is answered before that of the own node.
void QueueContention::recheck_predecessor(const std::string& node) {
  start_request();
  const std::string path = path_of(node);
  requests_.get(path, new_watch(Watches::Kind::data, path),
                on_answer([this](const Outcome& outcome, const Handle::Node&) {
                  predecessor_there_ = outcome.problem != Problem::no_node;
                  if (predecessor_there_ && outcome.problem != Problem::none) request_failed(outcome);
                }));
  recheck_own();
}

void QueueContention::recheck_own() {
  requests_.get(own_.path, on_answer([this](const Outcome& outcome, const Handle::Node& answer) {
                  if (outcome.problem == Problem::no_node) return node_removed();
                  if (outcome.problem != Problem::none) return request_failed(outcome);
                  execute(walk_.rechecked(predecessor_there_, answer.stat.created));
                }));
}

// Waiters behind this one watch the data of its node. A failed request is repeated before the grant.
void QueueContention::announce() {
  start_request();
  requests_.set(own_.path, QueueWalk::entered(request().holder), on_answer([this](const Outcome& outcome) {
                  if (outcome.problem == Problem::no_node) return node_removed();
                  if (outcome.problem != Problem::none) return request_failed(outcome);
                  grant();
                }));
}

std::optional<Queue> QueueContention::judge(const std::vector<std::string>& children) {
  Queue queue = judge_queue(client_.options_.layout, own_.lock_path, children, claim_.kind);
  if (queue.problem) {
    refuse(*queue.problem);
    return std::nullopt;
  }
  if (!queue.unknown.empty()) client_.warn_of_unknown_child(request().name, own_.lock_path, std::string(queue.unknown));
  return queue;
}

// Because of the queue's content. A later attempt queries the queue before it joins, so that retries use up no numbers
// and block no other client.
void QueueContention::refuse(Failure why) {
  client_.refused_.add(own_.lock_path);
  ended(std::move(why));
}

// A different client removed the own node.
void QueueContention::node_removed() {
  node_ = Node::none;
  retry_later();
}

}  // namespace dlock::zookeeper

#include "backends/zookeeper/strategies/queue_contention.hpp"

#include <algorithm>
#include <utility>

#include "util/names.hpp"

namespace dlock::zookeeper {

namespace {

using std::chrono::nanoseconds;
using std::chrono::seconds;

// Whether a watch still stands is asked rarely, at random, so that a long queue does not ask all at once; where no
// watch can be set, that is how a change is noticed.
constexpr nanoseconds check_min = seconds(20);
constexpr nanoseconds check_max = seconds(40);
constexpr nanoseconds poll_min = seconds(1);
constexpr nanoseconds poll_max = seconds(2);

// A server removes empty containers once a minute or so; whatever removes ours again and again is something else.
constexpr int max_parents_made = 8;

}  // namespace

QueueContention::QueueContention(Sequential& client, const LockRequest& request, GrantSink& sink)
    : SessionWaiter(client, request, sink),
      client_(client),
      requests_(client.requests_),
      claim_{.kind = request.kind, .mode = request.mode, .permits = request.permits},
      lock_path_(lock_path(client.options_.prefix, request.name, request.kind)),
      herd_(request.wait && client.options_.strategy == Strategy::sequential_herd),
      walk_(claim_, herd_) {}

QueueContention::~QueueContention() {
  cancel();
  client_.forget(request().name);
}

void QueueContention::resume() {
  if (node_ == Node::there) return list(herd_);
  if (node_ == Node::unknown) return find_node();
  const bool busy = !request().wait && client_.busy_.contains(lock_path_);
  if (busy || client_.refused_.contains(lock_path_)) return look_before_creating();
  create_node();
}

// --- Getting a place -------------------------------------------------------------------------------------------------

void QueueContention::look_before_creating() {
  start_request();
  requests_.children_synced(lock_path_,
                            on_answer([this](const Outcome& outcome, const std::vector<std::string>& children) {
                              if (outcome.problem != Problem::none && outcome.problem != Problem::no_node)
                                return request_failed(outcome);
                              const auto queue = judge(children);
                              if (!queue) return;
                              const QueueWalk::Step step = walk_.behind(*queue);
                              if (step.next == Next::refuse) return refuse(other_permits(request(), step.permits));
                              if (step.next == Next::wait && !request().wait) return found_busy();
                              const auto join = [this] {
                                client_.refused_.remove(lock_path_);
                                if (may_send()) create_node();
                              };
                              if (queue->semaphore) return unless_semaphore(join);
                              join();
                            }));
}

void QueueContention::join() {
  client_.refused_.remove(lock_path_);
  if (may_send()) create_node();
}

void QueueContention::create_node() {
  start_request();
  guid_ = guid_text(client_.options_.layout, client_.host_.new_owner_id());
  epoch_ = requests_.session().epoch();
  node_ = Node::creating;
  creation_ = std::make_shared<Creation>();
  // If the acquire was given up, the answer is the removal's.
  requests_.create(
      path_of(queue_node_prefix(client_.options_.layout, guid_, claim_)), request().holder,
      NodeKind::ephemeral_sequential,
      [&removals = client_.removals_, creation = creation_, lock_path = lock_path_,
       ours = on_answer([this](const Outcome& outcome, const Handle::Created& node) { node_created(outcome, node); })](
          const Outcome& outcome, const Handle::Created& node) {
        if (!creation->removal) return ours(outcome, node);
        removals.created(*creation->removal, outcome, lock_path + "/" + std::string(last_component(node.path)));
      });
  send_list(herd_);  // behind it at once: what it answers shows our node as well
}

void QueueContention::node_created(const Outcome& outcome, const Handle::Created& node) {
  node_ = Node::none;
  switch (outcome.problem) {
    case Problem::none:
      return placed(std::string(last_component(node.path)), node.stat);
    case Problem::no_node:
      return make_parents();
    case Problem::unknown_outcome:
    case Problem::session_over:
      node_ = Node::unknown;
      return request_failed(outcome);
    case Problem::not_executed:
      return request_failed(outcome);
    case Problem::node_exists:
    case Problem::no_rights:
      return ended(outcome.failure);
    case Problem::other:
      return explain_refusal(outcome.failure);
  }
}

void QueueContention::placed(const std::string& node, const Stat& stat) {
  node_ = Node::there;
  walk_.placed(node, {parse_queue_node(client_.options_.layout, node, claim_.kind).sequence, stat.created});
  if (stat.owner == requests_.session().id()) return;
  // Not of this session, so it goes when that one does, whatever becomes of ours.
  remove_node();
  retry_later();
}

void QueueContention::make_parents() {
  if (++parents_made_ > max_parents_made) {
    parents_made_ = 0;
    return unanswered(
        {errc::unavailable, "node " + util::quoted(lock_path_) + " is removed as soon as dlock creates it"});
  }
  const auto needed = std::make_shared<bool>(false);
  const auto ours = on_answer([this, needed](const Parents::Made& made) {
    *needed = true;
    if (made.status == Parents::Made::Status::again) return unanswered(made.failure);
    if (made.status == Parents::Made::Status::refused) return ended(made.failure);
    join();
  });
  client_.parents_.make(lock_path_, [ours, needed, &parents = client_.parents_, path = lock_path_](Parents::Made made) {
    ours(made);
    if (!*needed && made.by_us) parents.withdraw(path);  // the acquire was given up
  });
}

// The server takes no nodes below the lock's: what is that one?
void QueueContention::explain_refusal(const Failure& why) {
  if (!requests_.ready()) return ended(why);
  requests_.get(lock_path_, on_answer([this, why](const Outcome& outcome, const Handle::Node& node) {
                  if (outcome.problem != Problem::none || node.stat.owner == 0) return ended(why);
                  ended({errc::protocol, "node " + util::quoted(lock_path_) +
                                             " is ephemeral: the lock is held with strategy=ephemeral, which cannot be "
                                             "mixed with a queue"});
                }));
}

void QueueContention::find_node() {
  start_request();
  // The create may have gone through another server than the one that is asked now.
  requests_.children_latest(
      lock_path_, on_answer([this](const Outcome& outcome, const std::vector<std::string>& children) {
        if (outcome.problem != Problem::none && outcome.problem != Problem::no_node) return request_failed(outcome);
        const auto ours = std::ranges::find_if(
            children, [this](const std::string& child) { return child.find(guid_) != std::string::npos; });
        if (ours == children.end()) {
          node_ = Node::none;  // and never will be: what was under way at the other server is refused by now
          return proceed();
        }
        if (!may_send()) return;
        requests_.get(path_of(*ours), on_answer([this, node = *ours](const Outcome& seen, const Handle::Node& answer) {
                        if (seen.problem == Problem::no_node) {
                          node_ = Node::none;
                          return proceed();
                        }
                        if (seen.problem != Problem::none) return request_failed(seen);
                        placed(node, answer.stat);
                        if (node_ == Node::there) proceed();
                      }));
      }));
}

// --- In the queue ----------------------------------------------------------------------------------------------------

void QueueContention::list(bool watched) {
  if (!may_send()) return;
  start_request();
  send_list(watched);
}

void QueueContention::send_list(bool watched) {
  list_watched_ = watched;
  Watches::Interest* const watch = watched ? new_watch(Watches::Kind::children, lock_path_) : nullptr;
  requests_.children(lock_path_, watch,
                     on_answer([this](const Outcome& outcome, const std::vector<std::string>& children) {
                       listed(outcome, children);
                     }));
}

void QueueContention::listed(const Outcome& outcome, const std::vector<std::string>& children) {
  if (node_ != Node::there) return;  // sent behind the create, which has yet to say what became of it
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
      lock_path_, on_answer([this, go_on = std::move(go_on)](const Outcome& outcome, std::string_view occupied) {
        if (outcome.problem != Problem::none) return request_failed(outcome);
        if (!occupied.empty()) return refuse(foreign_child(lock_path_, occupied, semaphore_layout));
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

// The one before us is answered for before our own node.
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
  requests_.get(path_of(walk_.node()), on_answer([this](const Outcome& outcome, const Handle::Node& answer) {
                  if (outcome.problem == Problem::no_node) return node_removed();
                  if (outcome.problem != Problem::none) return request_failed(outcome);
                  execute(walk_.rechecked(predecessor_there_, answer.stat.created));
                }));
}

void QueueContention::keep_waiting() {
  wait(watch_ ? random_between(check_min, check_max, executor()) : random_between(poll_min, poll_max, executor()));
}

// Those behind us watch our node's data. What cannot be said is said again before the grant.
void QueueContention::announce() {
  start_request();
  requests_.set(path_of(walk_.node()), QueueWalk::entered(request().holder), on_answer([this](const Outcome& outcome) {
                  if (outcome.problem == Problem::no_node) return node_removed();
                  if (outcome.problem != Problem::none) return request_failed(outcome);
                  grant();
                }));
}

void QueueContention::grant() {
  auto grant = grant_of(FencingToken(static_cast<std::uint64_t>(walk_.created())));
  if (!grant) return;
  client_.holds_.add(*grant, own_node(), false);
  node_ = Node::none;
  client_.busy_.remove(lock_path_);
  granted(*std::move(grant));
}

std::optional<Queue> QueueContention::judge(const std::vector<std::string>& children) {
  Queue queue = judge_queue(client_.options_.layout, lock_path_, children, claim_.kind);
  if (queue.problem) {
    refuse(*queue.problem);
    return std::nullopt;
  }
  if (!queue.unknown.empty()) client_.warn_of_unknown_child(request().name, lock_path_, std::string(queue.unknown));
  return queue;
}

Watches::Interest* QueueContention::new_watch(Watches::Kind kind, const std::string& path) {
  watch_ = client_.watches_.watch(kind, path, [this] { wake(); });
  return watch_.get();
}

// --- Ends and new beginnings -----------------------------------------------------------------------------------------

// Because of what is in the queue. A later attempt looks before it joins, so that repeated attempts use up no numbers
// and block no other client.
void QueueContention::refuse(Failure why) {
  client_.refused_.add(lock_path_);
  ended(std::move(why));
}

void QueueContention::found_busy() {
  client_.busy_.add(lock_path_);
  busy();
}

// By another client.
void QueueContention::node_removed() {
  node_ = Node::none;
  retry_later();
}

void QueueContention::request_failed(const Outcome& outcome) {
  if (outcome.problem == Problem::no_rights || outcome.problem == Problem::other) return ended(outcome.failure);
  unanswered(outcome.failure);
}

// A waiter learns the state of the session. A try learns whether its request may have had an effect.
void QueueContention::unanswered(const Failure& why) {
  Failure reason = requests_.reason_of(why);
  if (!request().wait) reason.code = why.code;
  failed(reason);
}

void QueueContention::remove_node() {
  OwnNode own = own_node();
  const Node state = std::exchange(node_, Node::none);
  if (state == Node::creating) {
    creation_->removal = client_.removals_.await(std::move(own));
  } else if (state != Node::none) {
    client_.removals_.remove(std::move(own));
  }
}

OwnNode QueueContention::own_node() const {
  OwnNode own{.lock_path = lock_path_, .guid = guid_, .epoch = epoch_};
  if (node_ == Node::there) {
    own.path = path_of(walk_.node());
    own.created = walk_.created();
  }
  return own;
}

}  // namespace dlock::zookeeper

#include "backends/zookeeper/strategies/queue_contention.hpp"

#include <algorithm>
#include <utility>

#include "util/names.hpp"

namespace dlock::zookeeper {

namespace {

// A server removes empty containers once a minute or so; whatever removes ours again and again is something else.
constexpr int max_parents_made = 8;

bool is_final(const Failure& why) {
  return why.code == errc::access_denied || why.code == errc::invalid_argument || why.code == errc::unsupported;
}

}  // namespace

QueueContention::QueueContention(Sequential& client, std::uint64_t id, const LockRequest& request, GrantSink& sink)
    : client_(client),
      id_(id),
      request_(request),
      sink_(sink),
      lock_path_(lock_path(client.options_.prefix, request.name)),
      herd_(request.wait && client.options_.strategy == Strategy::sequential_herd),
      timer_(client.host_.executor()) {}

QueueContention::~QueueContention() {
  leave(Stage::over);
  bury_node();
  client_.forget(id_, request_.name);
}

void QueueContention::start() {
  if (client_.requests_.ready()) return begin();
  wait_for_session();
  // Whoever waits is to know; a final reason may be out of date, and is tried again.
  if (client_.trouble_.code && request_.wait) sink_.unreachable(client_.trouble_);
}

// --- The session -----------------------------------------------------------------------------------------------------

void QueueContention::wait_for_session() {
  leave(Stage::unready);
  client_.requests_.session().want();
  if (request_.wait) return;
  // A try ends with the first trouble it reports. The connection may be back in a moment, so it reports late.
  const auto patience = client_.options_.response_timeout / 4 * 3;
  timer_.arm(saturating_add(client_.host_.executor().now(), patience), [this] {
    Failure why = client_.requests_.session().problem();
    if (!why.code) why = {errc::unavailable, "there is no connection to ZooKeeper yet"};
    sink_.unreachable(std::move(why));
  });
}

void QueueContention::session_ready(bool fresh) {
  if (stage_ == Stage::over) return;
  if (epoch_ != client_.requests_.session().epoch() && (placed_ || unresolved_ || creation_)) {
    bury_node();
    leave(Stage::unready);
  }
  if (fresh && stage_ != Stage::unready) leave(Stage::unready);  // what was asked may never be answered
  if (stage_ == Stage::watching) return sink_.busy();
  if (stage_ == Stage::unready || stage_ == Stage::pausing) resume();
}

void QueueContention::session_suspended(const Failure& why) {
  if (stage_ == Stage::over) return;
  if (is_final(why)) return fail(why);
  if (request_.wait) sink_.unreachable(why);
}

void QueueContention::session_lost(const Failure& why) {
  if (stage_ == Stage::over) return;
  bury_node();
  wait_for_session();
  if (request_.wait) sink_.unreachable({errc::unavailable, why.detail});
}

// --- Getting a place -------------------------------------------------------------------------------------------------

void QueueContention::resume() {
  if (!client_.requests_.ready()) {
    if (stage_ != Stage::unready) leave(Stage::pausing);
    return;  // session_ready() comes back
  }
  if (unresolved_) return seek();
  if (placed_) return list();
  begin();
}

void QueueContention::begin() {
  if (!request_.wait && client_.busy_.contains(request_.name)) return look_first();
  enqueue();
}

void QueueContention::look_first() {
  leave(Stage::asking);
  const auto looked = [this](const Outcome& outcome, const std::vector<std::string>& children) {
    if (outcome.problem != Problem::none && outcome.problem != Problem::no_node) return trouble(outcome);
    const auto queue = judge(children);
    if (!queue) return;
    if (!queue->members.empty()) return busy();
    if (can_ask()) enqueue();
  };
  client_.requests_.children_synced(lock_path_, guarded(looked));
}

void QueueContention::enqueue() {
  leave(Stage::asking);
  guid_ = guid_text(client_.options_.layout, client_.host_.new_owner_id());
  epoch_ = client_.requests_.session().epoch();
  creation_ = std::make_shared<Creation>();
  const std::string path = path_of(queue_node_prefix(client_.options_.layout, guid_));
  // If we have given up, the tombstone is told; `this` is looked at only if not.
  client_.requests_.create(
      path, request_.holder, NodeKind::ephemeral_sequential,
      [&tombstones = client_.tombstones_, creation = creation_,
       tell_us = guarded([this](const Outcome& outcome, const Handle::Created& node) { created(outcome, node); }),
       lock_path = lock_path_](const Outcome& outcome, const Handle::Created& node) {
        creation->answered = true;
        if (creation->tombstone) {
          const std::string created_path = lock_path + "/" + std::string(last_component(node.path));
          return tombstones.created(*creation->tombstone, outcome, created_path);
        }
        tell_us(outcome, node);
      });
  // Behind it at once: what it answers shows our node as well.
  Watches::Interest* const watch = herd_ ? new_watch(Watches::Kind::children, lock_path_) : nullptr;
  client_.requests_.children(lock_path_, watch, when_answered(&QueueContention::listed));
}

void QueueContention::created(const Outcome& outcome, const Handle::Created& node) {
  creation_.reset();
  switch (outcome.problem) {
    case Problem::none:
      return place(std::string(last_component(node.path)), node.stat);
    case Problem::no_node:
      return make_parents();
    case Problem::unknown_outcome:
    case Problem::session_over:
      unresolved_ = true;
      return pause(outcome.failure);
    case Problem::not_executed:
      return pause(outcome.failure);
    case Problem::node_exists:
    case Problem::no_rights:
      return fail(outcome.failure);
    case Problem::other:
      return refused_below(outcome.failure);
  }
}

void QueueContention::place(const std::string& node, const Stat& stat) {
  placed_ = true;
  unresolved_ = false;
  const QueueNode parsed = parse_queue_node(client_.options_.layout, node);
  walk_.placed(node, {parsed.sequence, stat.created});
  if (stat.owner == client_.requests_.session().id()) return;
  // Not of this session, so it goes when that one does, whatever becomes of ours.
  bury_node();
  retry_later();
}

void QueueContention::make_parents() {
  leave(Stage::asking);
  if (++parents_made_ > max_parents_made) {
    parents_made_ = 0;
    return pause({errc::unavailable, "node " + util::quoted(lock_path_) + " is removed as soon as it is made"});
  }
  const auto go_on = [this](const Parents::Made& made) {
    switch (made.status) {
      case Parents::Made::Status::made:
        if (can_ask()) enqueue();
        return;
      case Parents::Made::Status::again:
        return pause(made.failure);
      case Parents::Made::Status::refused:
        return fail(made.failure);
    }
  };
  client_.parents_.make(lock_path_, [this, &parents = client_.parents_, path = lock_path_, round = round_,
                                     self = lifetime_.watch(), go_on](const Parents::Made& made) {
    if (!self.over() && round == round_) return go_on(made);
    if (made.by_us && (self.over() || stage_ == Stage::over)) parents.withdraw(path);
  });
}

// The server takes no nodes below ours: what is there?
void QueueContention::refused_below(const Failure& why) {
  leave(Stage::asking);
  if (!client_.requests_.ready()) return fail(why);
  client_.requests_.get(lock_path_, guarded([this, why](const Outcome& outcome, const Handle::Node& node) {
                          if (outcome.problem != Problem::none || node.stat.owner == 0) return fail(why);
                          fail({errc::protocol, "node " + util::quoted(lock_path_) +
                                                    " is ephemeral: the lock is held with strategy=ephemeral, which "
                                                    "does not go together with a queue"});
                        }));
}

// --- An outcome that is not known ------------------------------------------------------------------------------------

void QueueContention::seek() {
  leave(Stage::asking);
  const auto answered = [this](const Outcome& outcome, const std::vector<std::string>& children) {
    if (outcome.problem != Problem::none && outcome.problem != Problem::no_node) return trouble(outcome);
    sought(children);
  };
  // The create may have gone through another server than the one that is asked now.
  client_.requests_.children_latest(lock_path_, guarded(answered));
}

void QueueContention::sought(const std::vector<std::string>& children) {
  const auto found = std::find_if(children.begin(), children.end(),
                                  [this](const std::string& child) { return child.find(guid_) != std::string::npos; });
  if (found == children.end()) {
    unresolved_ = false;  // and never will be: what was under way at the other server is refused by now
    return resume();
  }
  if (!can_ask()) return;
  client_.requests_.get(path_of(*found),
                        guarded([this, node = *found](const Outcome& outcome, const Handle::Node& answer) {
                          if (outcome.problem == Problem::none) {
                            place(node, answer.stat);
                          } else if (outcome.problem == Problem::no_node) {
                            unresolved_ = false;
                          } else {
                            return trouble(outcome);
                          }
                          if (stage_ == Stage::asking) resume();
                        }));
}

// --- Ends and new beginnings -----------------------------------------------------------------------------------------

void QueueContention::grant() {
  Session& session = client_.requests_.session();
  // If it was heard while the connection broke, ask again, or begin anew with the next session.
  if (!can_ask()) return;
  if (epoch_ != session.epoch() || client_.host_.executor().now() >= session.valid_until()) return retry_later();
  const Grant grant{.name = request_.name,
                    .owner = request_.owner,
                    .token = FencingToken(static_cast<std::uint64_t>(walk_.created())),
                    .valid_until = session.valid_until(),
                    .lease = session.granted_timeout()};
  client_.holds_.add(grant, own_node(), false);
  placed_ = false;  // its node is the hold's now
  client_.busy_.remove(request_.name);
  leave(Stage::over);
  sink_.granted(grant);
}

void QueueContention::fail(Failure why) {
  bury_node();
  leave(Stage::over);
  sink_.failed(std::move(why));
}

// A try's end.
void QueueContention::busy() {
  client_.busy_.add(request_.name);
  bury_node();
  leave(Stage::over);
  sink_.busy();
}

// Somebody removed our node.
void QueueContention::start_over() {
  placed_ = false;
  retry_later();
}

bool QueueContention::can_ask() {
  if (client_.requests_.ready()) return true;
  retry_later();
  return false;
}

void QueueContention::retry_later() {
  leave(Stage::pausing);
  Executor& executor = client_.host_.executor();
  timer_.arm(saturating_add(executor.now(), backoff_.next(executor)), [this] { resume(); });
}

void QueueContention::pause(const Failure& why) {
  if (!request_.wait) return fail(why);
  retry_later();
  sink_.unreachable(why);
}

void QueueContention::trouble(const Outcome& outcome) {
  if (outcome.problem == Problem::no_rights || outcome.problem == Problem::other) return fail(outcome.failure);
  pause(outcome.failure);
}

void QueueContention::leave(Stage stage) {
  ++round_;
  stage_ = stage;
  changed_meanwhile_ = false;
  timer_.disarm();
  watch_.reset();
}

OwnNode QueueContention::own_node() const {
  return {.lock_path = lock_path_,
          .path = placed_ ? path_of(walk_.node()) : std::string(),
          .guid = guid_,
          .epoch = epoch_,
          .created = placed_ ? walk_.created() : 0};
}

void QueueContention::bury_node() {
  if (creation_ && !creation_->answered) {
    creation_->tombstone = client_.tombstones_.await(own_node());
  } else if (placed_ || unresolved_) {
    client_.tombstones_.remove(own_node());
  }
  creation_.reset();
  placed_ = false;
  unresolved_ = false;
}

}  // namespace dlock::zookeeper

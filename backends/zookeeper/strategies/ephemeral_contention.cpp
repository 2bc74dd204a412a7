#include "backends/zookeeper/strategies/ephemeral_contention.hpp"

#include "util/names.hpp"

namespace dlock::zookeeper {

EphemeralContention::EphemeralContention(Contentions& client, const LockRequest& request, GrantSink& sink)
    : NodeContention(client, request, sink) {
  own_.path = own_.lock_path;
  own_.owner = request.owner;
}

void EphemeralContention::resume() {
  const bool busy = !request().wait && client_.busy_.contains(own_.path);
  if (node_ != Node::none || busy) return query();
  create_node();
}

void EphemeralContention::create_node() {
  create(own_.path, data_of(request().holder, request().owner), NodeKind::ephemeral,
         own_.path.substr(0, own_.path.rfind('/')));
}

void EphemeralContention::not_created(const Outcome& outcome) {
  if (outcome.problem != Problem::node_exists) return ended(outcome.failure);
  if (may_send()) query(true);
}

// behind_create: sent after the create, so this server knows what that found.
void EphemeralContention::query(bool behind_create) {
  start_request();
  const bool watched = node_ == Node::none && request().wait;
  const auto answered = on_answer(
      [this, watched](const Outcome& outcome, const Handle::Node& node) { on_reply(outcome, node, watched); });
  if (watched) return requests_.get(own_.path, new_watch(Watches::Kind::data, own_.path), answered);
  if (behind_create) return requests_.get(own_.path, answered);
  if (node_ == Node::none) return requests_.get_synced(own_.path, answered);
  // The create may have gone through a different server than this query.
  requests_.get_latest(own_.path, answered);
}

void EphemeralContention::on_reply(const Outcome& outcome, const Handle::Node& node, bool watched) {
  if (outcome.problem != Problem::none && outcome.problem != Problem::no_node) return request_failed(outcome);
  node_ = Node::none;
  if (outcome.problem == Problem::no_node) {
    if (may_repeat(own_.path, "keeps appearing and disappearing") && may_send()) create_node();
    return;
  }
  if (refused(node)) return;
  if (is_of(node, request().owner, requests_.session())) {
    node_ = Node::there;
    own_.created = node.stat.created;
    return grant();
  }
  if (!request().wait) return found_busy();
  if (watched) return keep_waiting();
  if (may_send()) query();
}

bool EphemeralContention::refused(const Handle::Node& node) {
  if (node.stat.owner != 0) return false;
  const std::string called = "node " + util::quoted(own_.path);
  // Do not remove it: that would hit the lock of a faster client.
  if (node.stat.children == 0 && node.data.empty()) {
    failed({errc::unavailable, called +
                                   " is in the way; if it is a container left by the queue of another strategy, the "
                                   "servers remove it within about a minute; otherwise delete it"});
  } else {
    ended({errc::protocol, called + " is not ephemeral: it is the queue of another strategy, or no lock at all"});
  }
  return true;
}

}  // namespace dlock::zookeeper

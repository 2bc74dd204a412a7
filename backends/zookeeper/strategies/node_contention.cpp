#include "backends/zookeeper/strategies/node_contention.hpp"

#include <utility>

#include "util/names.hpp"

namespace dlock::zookeeper {

namespace {

using std::chrono::nanoseconds;
using std::chrono::seconds;

// A waiter checks rarely that its watch is still set, at random, so that those of a long queue do not check all at
// once. If no watch can be set, it polls.
constexpr nanoseconds check_min = seconds(20);
constexpr nanoseconds check_max = seconds(40);
constexpr nanoseconds poll_min = seconds(1);
constexpr nanoseconds poll_max = seconds(2);

// A server removes empty containers about once a minute; more frequent removals have a different cause.
constexpr int max_repeats = 8;

}  // namespace

NodeContention::NodeContention(Contentions& client, const LockRequest& request, GrantSink& sink)
    : SessionWaiter(client, request, sink),
      client_(client),
      requests_(client.requests_),
      own_{.lock_path = lock_path(client.options_.prefix, request.name, request.kind)} {}

// --- The node --------------------------------------------------------------------------------------------------------

void NodeContention::create(const std::string& path, const std::string& data, NodeKind kind, const std::string& above) {
  start_request();
  node_ = Node::creating;
  own_.epoch = requests_.session().epoch();
  own_.created = 0;
  creation_ = std::make_shared<Creation>();
  // If the acquire was given up, its removal gets the answer.
  requests_.create(path, data, kind,
                   [&removals = client_.removals_, creation = creation_,
                    ours = on_answer([this, above](const Outcome& outcome, const Handle::Created& node) {
                      created(outcome, node, above);
                    })](const Outcome& outcome, const Handle::Created& node) {
                     if (!creation->removal) return ours(outcome, node);
                     removals.created(*creation->removal, outcome, node.path);
                   });
}

void NodeContention::created(const Outcome& outcome, const Handle::Created& node, const std::string& above) {
  node_ = Node::none;
  switch (outcome.problem) {
    case Problem::none:
      node_ = Node::there;
      own_.created = node.stat.created;
      return placed(node);
    case Problem::no_node:
      return make_parents(above);
    case Problem::unknown_outcome:
    case Problem::session_over:
      node_ = Node::unknown;
      return request_failed(outcome);
    case Problem::not_executed:
      return request_failed(outcome);
    case Problem::node_exists:
    case Problem::no_rights:
    case Problem::other:
      return not_created(outcome);
  }
}

void NodeContention::make_parents(const std::string& path) {
  if (!may_repeat(path, "is removed as soon as dlock creates it")) return;
  const auto needed = std::make_shared<bool>(false);
  const auto ours = on_answer([this, needed](Parents::Made made) {
    *needed = true;
    if (made.status == Parents::Made::Status::made) return may_send() ? create_node() : void();
    if (made.failure.code == errc::ambiguous) made.failure.code = errc::unavailable;  // of the parents, not of the lock
    unanswered(made.failure);
  });
  client_.parents_.make(path, [ours, needed, &parents = client_.parents_, path](const Parents::Made& made) {
    ours(made);
    if (!*needed && made.by_us) parents.withdraw(path);  // the acquire was given up
  });
}

void NodeContention::remove_node() {
  const Node state = std::exchange(node_, Node::none);
  if (state == Node::creating) {
    creation_->removal = client_.removals_.await(own_);
  } else if (state != Node::none) {
    client_.removals_.remove(own_);
  }
}

void NodeContention::grant() {
  auto grant = grant_of(FencingToken(static_cast<std::uint64_t>(own_.created)));
  if (!grant) return;
  client_.holds_.add(*grant, own_, false);
  client_.busy_.remove(own_.lock_path);
  granted(*std::move(grant));
}

// --- Waiting, and ends -----------------------------------------------------------------------------------------------

void NodeContention::keep_waiting() {
  wait(watch_ ? random_between(check_min, check_max, executor()) : random_between(poll_min, poll_max, executor()));
}

void NodeContention::found_busy() {
  client_.busy_.add(own_.lock_path);
  busy();
}

void NodeContention::request_failed(const Outcome& outcome) {
  if (outcome.problem == Problem::no_rights || outcome.problem == Problem::other) return ended(outcome.failure);
  unanswered(outcome.failure);
}

// A waiter gets the state of the session. A try gets whether its request may have had an effect.
void NodeContention::unanswered(const Failure& why) {
  Failure reason = requests_.reason_of(why);
  if (!request().wait) reason.code = why.code;
  failed(reason);
}

bool NodeContention::may_repeat(const std::string& path, const char* what) {
  if (++repeats_ <= max_repeats) return true;
  unanswered({errc::unavailable, "node " + util::quoted(path) + " " + what});
  return false;
}

Watches::Interest* NodeContention::new_watch(Watches::Kind kind, const std::string& path) {
  watch_ = client_.watches_.watch(kind, path, [this] { wake(); });
  return watch_.get();
}

}  // namespace dlock::zookeeper

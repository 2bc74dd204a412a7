#include "backends/zookeeper/strategies/ephemeral.hpp"

#include <algorithm>
#include <utility>

#include "backends/common/for_each_still_in.hpp"
#include "backends/zookeeper/nodes/node_name.hpp"
#include "util/names.hpp"

namespace dlock::zookeeper {

namespace {

// Times that a try begins again, because what was in its way was gone when it looked.
constexpr int max_repeats = 8;

}  // namespace

struct Ephemeral::Attempt {
  Attempt(Executor& executor, const LockRequest& what, TryHandler handler)
      : request(what), done(std::move(handler)), timer(executor) {}

  LockRequest request;
  TryHandler done;
  std::string path;
  bool waiting = true;    // for a session
  bool creating = false;  // a create is under way
  int repeats = 0;
  Timer timer;
};

Ephemeral::Ephemeral(BackendHost& host, const Options& options, Requests& requests, Parents& parents,
                     Removals& removals, Holds& holds)
    : host_(host), options_(options), requests_(requests), parents_(parents), removals_(removals), holds_(holds) {}

Ephemeral::~Ephemeral() {
  // Their handlers may hold what holds watches.
  const auto attempts = std::exchange(attempts_, {});
}

Ephemeral::Attempt* Ephemeral::find(AttemptId id) const {
  const auto found = attempts_.find(id);
  return found == attempts_.end() ? nullptr : found->second.get();
}

// --- A try -----------------------------------------------------------------------------------------------------------

void Ephemeral::try_acquire(const LockRequest& request, TryHandler done) {
  const AttemptId id = ++next_id_;
  auto attempt = std::make_unique<Attempt>(host_.executor(), request, std::move(done));
  attempt->path = lock_path(options_.prefix, request.name, request.kind);
  // A little before the core stops waiting, so that it hears the reason.
  attempt->timer.arm(saturating_add(host_.executor().now(), options_.response_timeout / 4 * 3), [this, id] {
    Failure why = requests_.session().problem();
    if (!why.code) why = {errc::unavailable, "ZooKeeper did not answer in time"};
    no_answer(id, why);
  });
  attempts_.emplace(id, std::move(attempt));
  if (requests_.ready()) return begin(id);
  requests_.session().want();  // session_ready() goes on
}

void Ephemeral::begin(AttemptId id) {
  Attempt& attempt = *find(id);
  attempt.waiting = false;
  if (!attempt.request.wait && busy_.contains(attempt.path)) return look(id, true);
  create(id);
}

// first: whether there is anything; a create follows if not.
void Ephemeral::look(AttemptId id, bool first) {
  const Attempt& attempt = *find(id);
  const auto answered = [this, id](const Outcome& outcome, const Handle::Node& node) {
    if (find(id) != nullptr) looked(id, outcome, node);
  };
  if (first) {
    requests_.get_synced(attempt.path, answered);
  } else {
    requests_.get(attempt.path, answered);
  }
}

void Ephemeral::looked(AttemptId id, const Outcome& outcome, const Handle::Node& node) {
  Attempt& attempt = *find(id);
  switch (outcome.problem) {
    case Problem::none:
      break;
    case Problem::no_node:
      return again(id);
    default:
      return fail(id, {outcome.failure.code, requests_.reason_of(outcome.failure).detail});
  }
  if (node.stat.owner == 0) {
    // Not for us to remove: that would hit the lock of a faster client.
    if (node.stat.children == 0 && node.data.empty()) {
      return fail(id,
                  {errc::unavailable, "node " + util::quoted(attempt.path) +
                                          " is in the way; if it is a container left by the queue of another strategy, "
                                          "the servers remove it within about a minute; otherwise delete it"});
    }
    return fail(id, {errc::protocol, "node " + util::quoted(attempt.path) +
                                         " is not ephemeral: it is the queue of another strategy, or no lock at all"});
  }
  // By a create that was not answered.
  const bool ours = node.stat.owner == requests_.session().id() && is_of(node.data, attempt.request.owner);
  if (ours) return grant(id, node.stat);
  busy(id);
}

void Ephemeral::create(AttemptId id) {
  Attempt& attempt = *find(id);
  attempt.creating = true;
  requests_.create(attempt.path, data_of(attempt.request.holder, attempt.request.owner), NodeKind::ephemeral,
                   [this, id](const Outcome& outcome, const Handle::Created& node) {
                     if (find(id) != nullptr) created(id, outcome, node);
                   });
}

void Ephemeral::created(AttemptId id, const Outcome& outcome, const Handle::Created& node) {
  Attempt& attempt = *find(id);
  switch (outcome.problem) {
    case Problem::none:
      return grant(id, node.stat);
    case Problem::node_exists:
      attempt.creating = false;
      if (!requests_.ready()) return busy(id);
      return look(id, false);
    case Problem::no_node:
      attempt.creating = false;
      return make_parents(id);
    case Problem::unknown_outcome:
    case Problem::session_over:
      return no_answer(id, outcome.failure);
    case Problem::not_executed:
    case Problem::no_rights:
    case Problem::other:
      return fail(id, outcome.failure);
  }
}

void Ephemeral::make_parents(AttemptId id) {
  if (!may_repeat(id)) return;
  const std::string path = find(id)->path;
  parents_.make(path.substr(0, path.rfind('/')), [this, id](const Parents::Made& made) {
    if (find(id) == nullptr) return;
    if (made.status == Parents::Made::Status::made) return again(id);
    Failure why = made.failure;
    // Of the parents, not of the lock.
    if (why.code == errc::ambiguous) why.code = errc::unavailable;
    fail(id, std::move(why));
  });
}

void Ephemeral::again(AttemptId id) {
  if (may_repeat(id)) create(id);
}

bool Ephemeral::may_repeat(AttemptId id) {
  if (!requests_.ready()) {
    fail(id, {errc::unavailable, requests_.session().problem().detail});
    return false;
  }
  if (++find(id)->repeats <= max_repeats) return true;
  fail(id, {errc::unavailable, "node " + util::quoted(find(id)->path) + " keeps appearing and disappearing"});
  return false;
}

// --- How it ends -----------------------------------------------------------------------------------------------------

void Ephemeral::grant(AttemptId id, const Stat& stat) {
  const Attempt& attempt = *find(id);
  Session& session = requests_.session();
  if (!session.ready() || stat.owner != session.id() || may_be_over(session.valid_until(), host_.executor().now())) {
    return no_answer(id, {errc::ambiguous, "the session broke while the lock was granted"});
  }
  const Grant grant{.name = attempt.request.name,
                    .owner = attempt.request.owner,
                    .token = FencingToken(static_cast<std::uint64_t>(stat.created)),
                    .valid_until = session.valid_until(),
                    .lease = session.granted_timeout(),
                    .kind = attempt.request.kind};
  holds_.add(grant,
             {.lock_path = attempt.path,
              .path = attempt.path,
              .epoch = session.epoch(),
              .created = stat.created,
              .owner = attempt.request.owner},
             false);
  busy_.remove(attempt.path);
  answer(id, {.status = TryOutcome::Status::granted, .grant = grant});
}

void Ephemeral::busy(AttemptId id) {
  const Attempt& attempt = *find(id);
  if (!attempt.request.wait) busy_.add(attempt.path);
  answer(id, {.status = TryOutcome::Status::busy});
}

// The create may have been carried out.
void Ephemeral::no_answer(AttemptId id, const Failure& why) {
  const Attempt& attempt = *find(id);
  if (!attempt.creating) return fail(id, why);
  fail(id, {errc::ambiguous, requests_.reason_of(why).detail});
}

void Ephemeral::answer(AttemptId id, TryOutcome outcome) {
  const auto attempt = std::move(attempts_.at(id));
  attempts_.erase(id);
  attempt->timer.disarm();
  attempt->done(std::move(outcome));
}

void Ephemeral::abandon(const LockRequest& request) {
  const std::string path = lock_path(options_.prefix, request.name, request.kind);
  removals_.remove({.lock_path = path, .path = path, .epoch = requests_.session().epoch(), .owner = request.owner});
}

// --- The session -----------------------------------------------------------------------------------------------------

void Ephemeral::session_ready() {
  common::for_each_still_in(attempts_, [this](AttemptId id, auto&) {
    // The others have been asked for already, and will be answered.
    if (find(id)->waiting && requests_.ready()) begin(id);
  });
}

void Ephemeral::session_suspended(const Failure& why) {
  if (why.code != errc::access_denied) return;
  common::for_each_still_in(attempts_, [&](AttemptId id, auto&) { fail(id, why); });
}

void Ephemeral::session_lost(const Failure& why) {
  common::for_each_still_in(attempts_, [&](AttemptId id, auto&) {
    fail(id, {find(id)->creating ? errc::ambiguous : errc::unavailable, why.detail});
  });
}

}  // namespace dlock::zookeeper

#include "backends/zookeeper/strategies/queue_contention.hpp"

#include <utility>

#include "backends/common/reconnect.hpp"
#include "util/names.hpp"

namespace dlock::zookeeper {

namespace {

using std::chrono::seconds;

// Whether a watch still stands is asked rarely, at random, so that a long queue does not ask all at once; where no
// watch can be set, that is how a change is noticed.
constexpr std::chrono::nanoseconds check_min = seconds(20);
constexpr std::chrono::nanoseconds check_max = seconds(40);
constexpr std::chrono::nanoseconds poll_min = seconds(1);
constexpr std::chrono::nanoseconds poll_max = seconds(2);

Claim claim_of(const LockRequest& request) {
  return {.kind = request.kind, .mode = request.mode, .permits = request.permits};
}

}  // namespace

QueueContention::QueueContention(Sequential& client, std::uint64_t id, const LockRequest& request, GrantSink& sink)
    : client_(client),
      id_(id),
      request_(request),
      sink_(sink),
      lock_path_(lock_path(client.options_.prefix, request.name, request.kind)),
      herd_(request.wait && client.options_.strategy == Strategy::sequential_herd),
      walk_(claim_of(request), herd_),
      place_(client.requests_, client.parents_, client.tombstones_, client.options_.layout, claim_of(request),
             lock_path_),
      timer_(client.host_.executor()) {}

QueueContention::~QueueContention() {
  client_.forget(id_, request_.name);
}

void QueueContention::start() {
  if (client_.requests_.ready()) return begin();
  wait_for_session();
  // A waiter is told; a final reason may be out of date, and is tried again.
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

void QueueContention::session_ready() {
  if (stage_ == Stage::watching) return sink_.busy();
  if (stage_ == Stage::unready || stage_ == Stage::pausing) resume();
}

void QueueContention::session_suspended(const Failure& why) {
  if (stage_ == Stage::over) return;
  if (common::is_final_refusal(why)) return fail(why);
  if (request_.wait) sink_.unreachable(why);
}

void QueueContention::session_lost(const Failure& why) {
  if (stage_ == Stage::over) return;
  place_.give_up();
  wait_for_session();
  if (request_.wait) sink_.unreachable({errc::unavailable, why.detail});
}

// --- Getting a place -------------------------------------------------------------------------------------------------

void QueueContention::resume() {
  if (!client_.requests_.ready()) {
    if (stage_ != Stage::unready) leave(Stage::pausing);
    return;  // session_ready() comes back
  }
  if (place_.unknown()) {
    leave(Stage::asking);
    return place_.find(guarded([this](const QueuePlace::Answer& answer) {
      placed(answer);
      if (place_.there()) resume();
    }));
  }
  if (place_.there()) return list(herd_);
  begin();
}

void QueueContention::begin() {
  const bool busy = !request_.wait && client_.busy_.contains(lock_path_);
  if (busy || client_.refused_.contains(lock_path_)) return look_first();
  enqueue();
}

void QueueContention::look_first() {
  leave(Stage::asking);
  const auto looked = [this](const Outcome& outcome, const std::vector<std::string>& children) {
    if (outcome.problem != Problem::none && outcome.problem != Problem::no_node) return trouble(outcome);
    const auto queue = judge(children);
    if (!queue) return;
    const QueueWalk::Step step = walk_.behind(*queue);
    if (step.next == Next::refuse) return refuse(other_permits(request_, step.permits));
    if (step.next == Next::wait && !request_.wait) return busy();
    if (queue->semaphore) return outside_semaphore([this] { join(); });
    join();
  };
  client_.requests_.children_synced(lock_path_, guarded(looked));
}

void QueueContention::join() {
  client_.refused_.remove(lock_path_);
  if (can_ask()) enqueue();
}

void QueueContention::enqueue() {
  leave(Stage::asking);
  place_.take(client_.host_.new_owner_id(), request_.holder, when_answered(&QueueContention::placed));
  ask_for_list(herd_);  // behind it at once: what it answers shows our node as well
}

void QueueContention::placed(const QueuePlace::Answer& answer) {
  using Kind = QueuePlace::Answer::Kind;
  switch (answer.kind) {
    case Kind::there:
      return walk_.placed(place_.node(), place_.position());
    case Kind::gone:
      return resume();
    case Kind::parents_made:
      return join();
    case Kind::later:
      return retry_later();
    case Kind::trouble:
      return pause(answer.failure);
    case Kind::refused:
      return fail(answer.failure);
  }
}

// --- In the queue ----------------------------------------------------------------------------------------------------

void QueueContention::list(bool watched) {
  if (!can_ask()) return;
  leave(Stage::asking);
  ask_for_list(watched);
}

void QueueContention::ask_for_list(bool watched) {
  list_watched_ = watched;
  Watches::Interest* const watch = watched ? new_watch(Watches::Kind::children, lock_path_) : nullptr;
  client_.requests_.children(lock_path_, watch, when_answered(&QueueContention::listed));
}

void QueueContention::listed(const Outcome& outcome, const std::vector<std::string>& children) {
  if (!place_.there()) return;  // sent behind the create, which has yet to say what became of it
  if (outcome.problem == Problem::no_node) return start_over();
  if (outcome.problem != Problem::none) return trouble(outcome);
  const auto queue = judge(children);
  if (!queue) return;
  QueueWalk::Step step = walk_.listed(*queue, list_watched_);
  if (queue->semaphore) return outside_semaphore([this, step] { follow(step); });
  follow(std::move(step));
}

// Goes on if no semaphore at the lock's node is in use.
void QueueContention::outside_semaphore(std::function<void()> go_on) {
  if (!can_ask()) return;
  client_.requests_.occupied_semaphore(
      lock_path_, guarded([this, go_on = std::move(go_on)](const Outcome& outcome, std::string_view occupied) {
        if (outcome.problem != Problem::none) return trouble(outcome);
        if (!occupied.empty()) return refuse(foreign_child(lock_path_, occupied, semaphore_layout));
        go_on();
      }));
}

void QueueContention::follow(QueueWalk::Step step) {
  switch (step.next) {
    case Next::list:
      return resume();
    case Next::watch_list:
      if (!request_.wait) return busy();
      return list(true);
    case Next::watch:
      if (!request_.wait) return busy();
      return watch(step.node);
    case Next::weigh:
      return weigh(step.node);
    case Next::verify:
      return verify(step.node);
    case Next::confirm:
      before_there_ = false;
      return confirm();
    case Next::wait:
      return keep_watching();
    case Next::announce:
      return announce();
    case Next::grant:
      return grant();
    case Next::refuse:
      return refuse(other_permits(request_, step.permits));
    case Next::start_over:
      return start_over();
  }
}

void QueueContention::watch(const std::string& node) {
  if (!can_ask()) return;
  leave(Stage::asking);
  client_.requests_.get(path_of(node), new_watch(Watches::Kind::data, path_of(node)),
                        guarded([this](const Outcome& outcome, const Handle::Node& answer) {
                          if (outcome.problem == Problem::no_node) return follow(walk_.gone());
                          if (outcome.problem != Problem::none) return trouble(outcome);
                          follow(walk_.seen(answer.data));
                        }));
}

void QueueContention::weigh(const std::string& node) {
  if (!can_ask()) return;
  client_.requests_.get(path_of(node), guarded([this](const Outcome& outcome, const Handle::Node& answer) {
                          if (outcome.problem == Problem::none) return follow(walk_.weighed(answer.stat.created));
                          if (outcome.problem == Problem::no_node) return follow(walk_.weighed(std::nullopt));
                          trouble(outcome);
                        }));
}

// The one before us is answered for before our own node.
void QueueContention::verify(const std::string& node) {
  leave(Stage::asking);
  const std::string path = path_of(node);
  client_.requests_.get(path, new_watch(Watches::Kind::data, path),
                        guarded([this](const Outcome& outcome, const Handle::Node&) {
                          before_there_ = outcome.problem != Problem::no_node;
                          if (before_there_ && outcome.problem != Problem::none) trouble(outcome);
                        }));
  confirm();
}

void QueueContention::confirm() {
  if (!can_ask()) return;
  client_.requests_.get(path_of(walk_.node()), guarded([this](const Outcome& outcome, const Handle::Node& answer) {
                          if (outcome.problem == Problem::no_node) {
                            return follow(walk_.verified(before_there_, std::nullopt));
                          }
                          if (outcome.problem != Problem::none) return trouble(outcome);
                          follow(walk_.verified(before_there_, answer.stat.created));
                        }));
}

// Those behind us watch our node's data. What cannot be said is said again before the grant.
void QueueContention::announce() {
  if (!can_ask()) return;
  leave(Stage::asking);
  client_.requests_.set(path_of(walk_.node()), QueueWalk::entered(request_.holder),
                        guarded([this](const Outcome& outcome) {
                          if (outcome.problem == Problem::no_node) return start_over();
                          if (outcome.problem != Problem::none) return trouble(outcome);
                          grant();
                        }));
}

void QueueContention::changed() {
  if (stage_ == Stage::asking) changed_meanwhile_ = true;
  if (stage_ == Stage::watching && can_ask()) follow(walk_.changed());
}

void QueueContention::keep_watching() {
  stage_ = Stage::watching;
  if (changed_meanwhile_) return changed();
  backoff_.reset();
  Executor& executor = client_.host_.executor();
  const auto pause =
      watch_ ? random_between(check_min, check_max, executor) : random_between(poll_min, poll_max, executor);
  // Whether a change was missed.
  timer_.arm(saturating_add(executor.now(), pause), [this] { follow(walk_.check()); });
  sink_.busy();
}

std::optional<Queue> QueueContention::judge(const std::vector<std::string>& children) {
  Queue queue = judge_queue(client_.options_.layout, lock_path_, children, request_.kind);
  if (queue.problem) {
    refuse(*queue.problem);
    return std::nullopt;
  }
  if (!queue.unknown.empty()) client_.warn_of_unknown_child(request_.name, lock_path_, std::string(queue.unknown));
  return queue;
}

Watches::Interest* QueueContention::new_watch(Watches::Kind kind, const std::string& path) {
  watch_ = client_.watches_.watch(kind, path, [this] { changed(); });
  return watch_.get();
}

// --- Ends and new beginnings -----------------------------------------------------------------------------------------

void QueueContention::grant() {
  Session& session = client_.requests_.session();
  // If it was heard while the connection broke, ask again, or start again with the next session.
  if (!can_ask()) return;
  if (may_be_over(session.valid_until(), client_.host_.executor().now())) return retry_later();
  const Grant grant{.name = request_.name,
                    .owner = request_.owner,
                    .token = FencingToken(static_cast<std::uint64_t>(walk_.created())),
                    .valid_until = session.valid_until(),
                    .lease = session.granted_timeout(),
                    .kind = request_.kind,
                    .mode = request_.mode};
  client_.holds_.add(grant, place_.hand_over(), false);
  client_.busy_.remove(lock_path_);
  leave(Stage::over);
  sink_.granted(grant);
}

// Because of what is in the queue. A later attempt looks before it joins, so that repeated attempts use up no numbers
// and block no other client.
void QueueContention::refuse(Failure why) {
  client_.refused_.add(lock_path_);
  fail(std::move(why));
}

void QueueContention::fail(Failure why) {
  place_.give_up();
  leave(Stage::over);
  sink_.failed(std::move(why));
}

// A try's end.
void QueueContention::busy() {
  client_.busy_.add(lock_path_);
  place_.give_up();
  leave(Stage::over);
  sink_.busy();
}

// Our node was removed.
void QueueContention::start_over() {
  place_.removed();
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
  const Failure reason = client_.requests_.reason_of(why);
  if (!request_.wait) return fail({why.code, reason.detail});
  retry_later();
  sink_.unreachable(reason);
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

}  // namespace dlock::zookeeper

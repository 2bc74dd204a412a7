#include "backends/common/sql/waiter_queues.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include <dlock/duration.hpp>

namespace dlock::sql {

using std::chrono::nanoseconds;
using std::chrono::seconds;

namespace {

// The time of a wait in the server before it begins anew. While it waits, its snapshot keeps the server from removing
// dead rows in all tables; but a new request goes to the end of the server's queue.
struct Slices {
  nanoseconds shortest;
  nanoseconds longest;
};
constexpr Slices long_slices{.shortest = seconds(30), .longest = seconds(60)};
// While other locks wait for a session.
constexpr Slices short_slices{.shortest = seconds(1), .longest = seconds(2)};
// A slice that has lasted longer began when no other lock waited for a session. Only closing its connection ends it
// early.
constexpr nanoseconds longest_short_slice = seconds(4);
constexpr nanoseconds retry_interval = seconds(1);

constexpr nanoseconds shortest_pause = seconds(1);  // between questions about snapshots
constexpr nanoseconds longest_pause = seconds(2);
// For each query, the server examines each open transaction, and each of those may be a waiter that also queries.
constexpr nanoseconds pause_per_transaction = std::chrono::milliseconds(20);
constexpr std::int64_t most_counted = 1500;  // the slices end by themselves by then

// Whether the server cannot tell the two waits apart.
bool are_alike(const LockRequest& a, const LockRequest& b) {
  return a.mode == b.mode && holder_text(a) == holder_text(b);
}

}  // namespace

WaiterQueues::WaiterQueues(Executor& executor, Sessions& sessions, std::optional<Statement> question_about_snapshots)
    : executor_(executor),
      sessions_(sessions),
      timer_(executor),
      question_(std::move(question_about_snapshots)),
      snapshot_timer_(executor) {}

// --- Waiters ---------------------------------------------------------------------------------------------------------

class WaiterQueues::QueuedWaiter final : public Watch {
 public:
  QueuedWaiter(WaiterQueues& queues, std::string lock, std::uint64_t id)
      : queues_(queues), life_(queues.lifetime_.watch()), lock_(std::move(lock)), id_(id) {}
  ~QueuedWaiter() override {
    if (!life_.over()) queues_.remove(lock_, id_);
  }

 private:
  WaiterQueues& queues_;
  const Lifetime::Watch life_;
  const std::string lock_;
  const std::uint64_t id_;
};

std::unique_ptr<Watch> WaiterQueues::watch(const std::string& lock, const LockRequest& request,
                                           std::function<void()> changed) {
  const auto [found, is_new] = queues_.try_emplace(lock);
  found->second.waiters.emplace(++last_id_, Waiter{request, std::move(changed)});
  if (is_new) {
    without_session_.push_back(lock);
    sessions_.assign_sessions_soon();
  }
  return std::make_unique<QueuedWaiter>(*this, lock, last_id_);
}

void WaiterQueues::remove(const std::string& lock, std::uint64_t id) {
  const auto found = queues_.find(lock);
  if (found == queues_.end()) return;
  Queue& queue = found->second;
  const auto waiter = queue.waiters.find(id);
  if (waiter == queue.waiters.end()) return;
  const bool first = waiter == queue.waiters.begin();
  const LockRequest request = std::move(waiter->second.request);
  queue.waiters.erase(waiter);
  if (first) first_has_gone(lock, queue, request);
}

void WaiterQueues::leave(const std::string& lock, const OwnerId& waiter) {
  const auto found = queues_.find(lock);
  if (found == queues_.end()) return;
  const auto at = std::find_if(found->second.waiters.begin(), found->second.waiters.end(),
                               [&](const auto& item) { return item.second.request.owner == waiter; });
  if (at != found->second.waiters.end()) remove(lock, at->first);
}

// The next waiter gets the session, if the server cannot tell the two apart.
void WaiterQueues::first_has_gone(const std::string& lock, Queue& queue, const LockRequest& first) {
  queue.failure.reset();
  const bool is_last = queue.waiters.empty();
  if (queue.session != nullptr && !is_last && are_alike(first, queue.waiters.begin()->second.request)) {
    if (queue.has_lock) notify(lock);
    return;
  }
  if (queue.session != nullptr) {
    const bool has_lock = queue.has_lock;
    DedicatedSession* const session = leave_session(lock, queue, Turn::next);
    has_lock ? session->clean() : session->close();
  }
  if (!is_last) return;
  std::erase(without_session_, lock);
  queues_.erase(lock);
}

// The lock has no session then, until its turn comes again.
DedicatedSession* WaiterQueues::leave_session(const std::string& lock, Queue& queue, Turn turn) {
  if (!std::exchange(queue.has_lock, false)) --waiting_;
  without_session_.insert(turn == Turn::next ? without_session_.begin() : without_session_.end(), lock);
  sessions_.assign_sessions_soon();
  return std::exchange(queue.session, nullptr);
}

DedicatedSession* WaiterQueues::take(const std::string& lock, const LockRequest& request) {
  Queue* const queue = queue_of_first(lock, request.owner);
  if (queue == nullptr || !queue->has_lock) return nullptr;
  DedicatedSession* const session = leave_session(lock, *queue, Turn::next);
  leave(lock, request.owner);
  return session;
}

std::optional<Failure> WaiterQueues::take_failure(const std::string& lock, const LockRequest& request) {
  Queue* const queue = queue_of_first(lock, request.owner);
  return queue == nullptr ? std::nullopt : std::exchange(queue->failure, std::nullopt);
}

void WaiterQueues::lost(const DedicatedSession& session) {
  for (auto& [lock, queue] : queues_) {
    if (queue.session == &session && queue.has_lock) (void)leave_session(lock, queue, Turn::next);
  }
}

// --- Questions -------------------------------------------------------------------------------------------------------

WaiterQueues::Queue* WaiterQueues::queue_of_first(const std::string& lock, const OwnerId& waiter) {
  const auto found = queues_.find(lock);
  if (found == queues_.end() || found->second.waiters.begin()->second.request.owner != waiter) return nullptr;
  return &found->second;
}

bool WaiterQueues::in_server(const std::string& lock) const {
  const auto found = queues_.find(lock);
  if (found == queues_.end() || found->second.session == nullptr) return false;
  return found->second.has_lock || found->second.session->is_ready();
}

bool WaiterQueues::has_no_place(const std::string& lock) const {
  const auto found = queues_.find(lock);
  return found != queues_.end() && found->second.session == nullptr;
}

std::size_t WaiterQueues::in_client(const std::string& lock) const {
  const auto found = queues_.find(lock);
  return found == queues_.end() ? 0 : found->second.waiters.size() - (in_server(lock) ? 1 : 0);
}

// --- Waiting in the server -------------------------------------------------------------------------------------------

void WaiterQueues::assign_sessions() {
  const TimePoint now = executor_.now();
  TimePoint again = saturating_add(now, retry_interval);
  for (auto at = without_session_.begin(); at != without_session_.end() && waiting_ < sessions_.most_waits();) {
    Queue& queue = queues_.at(*at);
    if (queue.pauses_until > now) {
      again = std::min(again, queue.pauses_until);
      ++at;
      continue;
    }
    queue.session = sessions_.session_for_wait();
    if (queue.session == nullptr) break;
    ++waiting_;
    const std::string lock = *at;
    at = without_session_.erase(at);
    wait(lock, queue);
  }
  timer_.disarm();
  if (!without_session_.empty()) timer_.arm(again, [this] { check(); });
}

void WaiterQueues::wait(const std::string& lock, Queue& queue) {
  const Slices& slices = without_session_.empty() ? long_slices : short_slices;
  queue.since = executor_.now();
  queue.session->ask(
      queue.waiters.begin()->second.request, random_between(slices.shortest, slices.longest, executor_),
      lifetime_.guard([this, lock](const TryOutcome& outcome, Remedy remedy) { answered(lock, outcome, remedy); }));
  if (question_ && !asking_ && !snapshot_timer_.armed()) ask_about_snapshots_in(nanoseconds(0));
}

void WaiterQueues::answered(const std::string& lock, const TryOutcome& outcome, Remedy remedy) {
  using Status = TryOutcome::Status;
  Queue& queue = queues_.at(lock);
  const TimePoint now = executor_.now();
  const bool granted = outcome.status == Status::granted;
  const bool slice_ended =
      outcome.status == Status::busy && now >= saturating_add(queue.since, short_slices.shortest / 2);
  if (granted || slice_ended) {
    queue.backoff.reset();
  } else {  // otherwise a server that answers without waiting would get one request after the other
    queue.pauses_until = saturating_add(now, queue.backoff.next(executor_));
  }
  if (granted) {
    queue.has_lock = true;
    --waiting_;
    return notify(lock);
  }
  if (slice_ended && without_session_.empty()) return wait(lock, queue);
  (void)leave_session(lock, queue, Turn::last);  // the session makes itself free
  if (outcome.status != Status::failed) return;
  // Otherwise a try makes the missing tables.
  if (remedy != Remedy::set_up) queue.failure = outcome.failure;
  notify(lock);
}

void WaiterQueues::freed(const std::string& lock, bool shared) {
  if (shared || has_no_place(lock)) notify(lock, shared);
}

// Notifies the first waiter; or, if `readers`, all that want to share the lock and wait before the first that does not.
void WaiterQueues::notify(const std::string& lock, bool readers) {
  executor_.post(lifetime_.guard([this, lock, readers] {
    const auto found = queues_.find(lock);
    if (found == queues_.end()) return;
    std::vector<std::function<void()>> notified;
    for (const auto& [id, waiter] : found->second.waiters) {
      if (readers ? waiter.request.mode != Mode::shared : !notified.empty()) break;
      notified.push_back(waiter.changed);
    }
    const Lifetime::Watch life = lifetime_.watch();
    for (const auto& changed : notified) {
      if (!life.over()) changed();
    }
  }));
}

// --- Ends of waits ---------------------------------------------------------------------------------------------------

WaiterQueues::Queues::iterator WaiterQueues::oldest() {
  auto oldest = queues_.end();
  for (auto at = queues_.begin(); at != queues_.end(); ++at) {
    if (at->second.session == nullptr || at->second.has_lock) continue;
    if (oldest == queues_.end() || at->second.since < oldest->second.since) oldest = at;
  }
  return oldest;
}

bool WaiterQueues::make_room() {
  const auto found = oldest();
  if (found == queues_.end()) return false;
  leave_session(found->first, found->second, Turn::next)->close();
  return true;
}

// If a lock waits for a session, closes that of the oldest wait if its slice is a long one.
void WaiterQueues::check() {
  const auto found = without_session_.empty() ? queues_.end() : oldest();
  if (found != queues_.end() && found->second.session->is_ready() &&
      executor_.now() >= saturating_add(found->second.since, longest_short_slice)) {
    leave_session(found->first, found->second, Turn::last)->close();
  }
  assign_sessions();
}

// --- Snapshots -------------------------------------------------------------------------------------------------------

void WaiterQueues::ask_about_snapshots_in(nanoseconds pause) {
  const nanoseconds at_least = random_between(shortest_pause, longest_pause, executor_);
  snapshot_timer_.arm(saturating_add(executor_.now(), std::max(pause, at_least)), [this] { ask_about_snapshots(); });
}

void WaiterQueues::ask_about_snapshots() {
  if (waiting_ == 0) return seen_.clear();  // the next wait begins anew
  asking_ = true;
  sessions_.ask({.commands = {{.statement = &*question_}},
                 .done = lifetime_.guard([this](const Outcome& outcome, const Results& results) {
                   snapshots_answered(outcome, results);
                 })});
}

void WaiterQueues::snapshots_answered(const Outcome& outcome, const Results& results) {
  asking_ = false;
  if (outcome.problem != Problem::none || results.empty()) return ask_about_snapshots_in(nanoseconds(0));
  const Rows& rows = results.front();
  std::set<std::string> waiting;
  for (std::size_t row = 0; row < rows.size(); ++row) {
    if (!rows.is_null(row, 1)) waiting.insert(rows.text(row, 1));
  }
  // A transaction waits for what is older than itself, so not for a wait that begins now.
  const bool any_new = std::any_of(waiting.begin(), waiting.end(),
                                   [this](const std::string& transaction) { return !seen_.contains(transaction); });
  seen_ = std::move(waiting);
  ask_about_snapshots_in(pause_per_transaction *
                         std::clamp<std::int64_t>(rows.number(0, 0).value_or(0), 0, most_counted));
  if (any_new) restart();
}

// All waits in the server end and begin anew.
void WaiterQueues::restart() {
  for (auto& [lock, queue] : queues_) {
    if (queue.session == nullptr || queue.has_lock || !queue.session->is_ready()) continue;
    leave_session(lock, queue, Turn::last)->close();
  }
}

}  // namespace dlock::sql

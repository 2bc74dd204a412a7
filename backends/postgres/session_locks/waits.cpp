#include "backends/postgres/session_locks/waits.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include <dlock/duration.hpp>

#include "backends/postgres/sql/statements.hpp"

namespace dlock::postgres {

using std::chrono::nanoseconds;
using std::chrono::seconds;

namespace {

// How long a wait in the server goes on before it is asked anew. While it waits, its snapshot keeps the server from
// cleaning up after all others, in all tables; but a new request goes to the end of the server's queue.
struct Slices {
  nanoseconds shortest;
  nanoseconds longest;
};
constexpr Slices long_slices{.shortest = seconds(30), .longest = seconds(60)};
// While other locks wait for a session.
constexpr Slices short_slices{.shortest = seconds(1), .longest = seconds(2)};
// Then a slice that has lasted so long was begun when no other lock waited for a session. Only the end of its
// connection ends it sooner.
constexpr nanoseconds longest_short_slice = seconds(4);
constexpr nanoseconds looks_again = seconds(1);

constexpr nanoseconds shortest_pause = seconds(1);  // between questions about snapshots
constexpr nanoseconds longest_pause = seconds(2);
// The answer costs the server a look at each open transaction, and each of those may be a waiter that asks.
constexpr nanoseconds pause_per_transaction = std::chrono::milliseconds(20);
constexpr std::int64_t most_counted = 1500;  // the slices end by themselves by then

// One wait in the server is as good as the other.
bool are_alike(const LockRequest& a, const LockRequest& b) {
  return a.mode == b.mode && holder_text(a) == holder_text(b);
}

}  // namespace

Waits::Waits(Executor& executor, Sessions& sessions)
    : executor_(executor),
      sessions_(sessions),
      timer_(executor),
      question_(waits_for_snapshots()),
      snapshot_timer_(executor) {}

// --- Coming and going ------------------------------------------------------------------------------------------------

class Waits::Waiting final : public Watch {
 public:
  Waiting(Waits& waits, std::string lock, std::uint64_t id)
      : waits_(waits), life_(waits.lifetime_.watch()), lock_(std::move(lock)), id_(id) {}
  ~Waiting() override {
    if (!life_.over()) waits_.remove(lock_, id_);
  }

 private:
  Waits& waits_;
  const Lifetime::Watch life_;
  const std::string lock_;
  const std::uint64_t id_;
};

std::unique_ptr<Watch> Waits::watch(const std::string& lock, const LockRequest& request,
                                    std::function<void()> changed) {
  const auto [found, is_new] = lines_.try_emplace(lock);
  found->second.waiters.emplace(++last_id_, Waiter{request, std::move(changed)});
  if (is_new) {
    outside_.push_back(lock);
    sessions_.serve_soon();
  }
  return std::make_unique<Waiting>(*this, lock, last_id_);
}

void Waits::remove(const std::string& lock, std::uint64_t id) {
  const auto found = lines_.find(lock);
  if (found == lines_.end()) return;
  Line& line = found->second;
  const auto waiter = line.waiters.find(id);
  if (waiter == line.waiters.end()) return;
  const bool first = waiter == line.waiters.begin();
  const LockRequest request = std::move(waiter->second.request);
  line.waiters.erase(waiter);
  if (first) first_has_gone(lock, line, request);
}

void Waits::leave(const std::string& lock, const OwnerId& waiter) {
  const auto found = lines_.find(lock);
  if (found == lines_.end()) return;
  const auto at = std::find_if(found->second.waiters.begin(), found->second.waiters.end(),
                               [&](const auto& item) { return item.second.request.owner == waiter; });
  if (at != found->second.waiters.end()) remove(lock, at->first);
}

// The next one inherits the session, if the server cannot tell them apart.
void Waits::first_has_gone(const std::string& lock, Line& line, const LockRequest& first) {
  line.failure.reset();
  const bool is_last = line.waiters.empty();
  if (line.session != nullptr && !is_last && are_alike(first, line.waiters.begin()->second.request)) {
    if (line.has_lock) tell(lock);
    return;
  }
  if (line.session != nullptr) {
    const bool has_lock = line.has_lock;
    LockSession* const session = leave_session(lock, line, Turn::next);
    has_lock ? session->clean() : session->close();
  }
  if (!is_last) return;
  std::erase(outside_, lock);
  lines_.erase(lock);
}

// The lock has none then, until its turn comes again.
LockSession* Waits::leave_session(const std::string& lock, Line& line, Turn turn) {
  if (!std::exchange(line.has_lock, false)) --waiting_;
  outside_.insert(turn == Turn::next ? outside_.begin() : outside_.end(), lock);
  sessions_.serve_soon();
  return std::exchange(line.session, nullptr);
}

LockSession* Waits::take(const std::string& lock, const LockRequest& request) {
  Line* const line = line_of_first(lock, request.owner);
  if (line == nullptr || !line->has_lock) return nullptr;
  LockSession* const session = leave_session(lock, *line, Turn::next);
  leave(lock, request.owner);
  return session;
}

std::optional<Failure> Waits::take_failure(const std::string& lock, const LockRequest& request) {
  Line* const line = line_of_first(lock, request.owner);
  return line == nullptr ? std::nullopt : std::exchange(line->failure, std::nullopt);
}

void Waits::lost(const LockSession& session) {
  for (auto& [lock, line] : lines_) {
    if (line.session == &session && line.has_lock) (void)leave_session(lock, line, Turn::next);
  }
}

// --- Questions -------------------------------------------------------------------------------------------------------

Waits::Line* Waits::line_of_first(const std::string& lock, const OwnerId& waiter) {
  const auto found = lines_.find(lock);
  if (found == lines_.end() || found->second.waiters.begin()->second.request.owner != waiter) return nullptr;
  return &found->second;
}

bool Waits::in_server(const std::string& lock) const {
  const auto found = lines_.find(lock);
  if (found == lines_.end() || found->second.session == nullptr) return false;
  return found->second.has_lock || found->second.session->is_ready();
}

bool Waits::has_no_place(const std::string& lock) const {
  const auto found = lines_.find(lock);
  return found != lines_.end() && found->second.session == nullptr;
}

std::size_t Waits::in_client(const std::string& lock) const {
  const auto found = lines_.find(lock);
  return found == lines_.end() ? 0 : found->second.waiters.size() - (in_server(lock) ? 1 : 0);
}

// --- Waiting in the server -------------------------------------------------------------------------------------------

void Waits::serve() {
  const TimePoint now = executor_.now();
  TimePoint again = saturating_add(now, looks_again);
  for (auto at = outside_.begin(); at != outside_.end() && waiting_ < sessions_.most_waits();) {
    Line& line = lines_.at(*at);
    if (line.pauses_until > now) {
      again = std::min(again, line.pauses_until);
      ++at;
      continue;
    }
    line.session = sessions_.session_for_wait();
    if (line.session == nullptr) break;
    ++waiting_;
    const std::string lock = *at;
    at = outside_.erase(at);
    wait(lock, line);
  }
  timer_.disarm();
  if (!outside_.empty()) timer_.arm(again, [this] { check(); });
}

void Waits::wait(const std::string& lock, Line& line) {
  const Slices& slices = outside_.empty() ? long_slices : short_slices;
  line.since = executor_.now();
  line.session->ask(
      line.waiters.begin()->second.request, random_between(slices.shortest, slices.longest, executor_),
      lifetime_.guard([this, lock](const TryOutcome& outcome, Remedy remedy) { answered(lock, outcome, remedy); }));
  if (!asking_ && !snapshot_timer_.armed()) ask_about_snapshots_in(nanoseconds(0));
}

void Waits::answered(const std::string& lock, const TryOutcome& outcome, Remedy remedy) {
  using Status = TryOutcome::Status;
  Line& line = lines_.at(lock);
  const TimePoint now = executor_.now();
  const bool granted = outcome.status == Status::granted;
  const bool slice_ended =
      outcome.status == Status::busy && now >= saturating_add(line.since, short_slices.shortest / 2);
  if (granted || slice_ended) {
    line.backoff.reset();
  } else {  // a server that says so without having waited would be asked again and again
    line.pauses_until = saturating_add(now, line.backoff.next(executor_));
  }
  if (granted) {
    line.has_lock = true;
    --waiting_;
    return tell(lock);
  }
  if (slice_ended && outside_.empty()) return wait(lock, line);
  (void)leave_session(lock, line, Turn::last);  // it makes itself free
  if (outcome.status != Status::failed) return;
  // A try makes missing tables.
  if (remedy != Remedy::set_up) line.failure = outcome.failure;
  tell(lock);
}

void Waits::freed(const std::string& lock, bool shared) {
  if (shared || has_no_place(lock)) tell(lock, shared);
}

// The first one; or all that want to share the lock, and come before the first that does not.
void Waits::tell(const std::string& lock, bool readers) {
  executor_.post(lifetime_.guard([this, lock, readers] {
    const auto found = lines_.find(lock);
    if (found == lines_.end()) return;
    std::vector<std::function<void()>> told;
    for (const auto& [id, waiter] : found->second.waiters) {
      if (readers ? waiter.request.mode != Mode::shared : !told.empty()) break;
      told.push_back(waiter.changed);
    }
    const Lifetime::Watch life = lifetime_.watch();
    for (const auto& changed : told) {
      if (!life.over()) changed();
    }
  }));
}

// --- Ends of waits ---------------------------------------------------------------------------------------------------

Waits::Lines::iterator Waits::oldest() {
  auto oldest = lines_.end();
  for (auto at = lines_.begin(); at != lines_.end(); ++at) {
    if (at->second.session == nullptr || at->second.has_lock) continue;
    if (oldest == lines_.end() || at->second.since < oldest->second.since) oldest = at;
  }
  return oldest;
}

bool Waits::make_room() {
  const auto found = oldest();
  if (found == lines_.end()) return false;
  leave_session(found->first, found->second, Turn::next)->close();
  return true;
}

// Where a lock waits for a session, and a long slice keeps it.
void Waits::check() {
  const auto found = outside_.empty() ? lines_.end() : oldest();
  if (found != lines_.end() && found->second.session->is_ready() &&
      executor_.now() >= saturating_add(found->second.since, longest_short_slice)) {
    leave_session(found->first, found->second, Turn::last)->close();
  }
  serve();
}

// --- Snapshots -------------------------------------------------------------------------------------------------------

void Waits::ask_about_snapshots_in(nanoseconds pause) {
  const nanoseconds at_least = random_between(shortest_pause, longest_pause, executor_);
  snapshot_timer_.arm(saturating_add(executor_.now(), std::max(pause, at_least)), [this] { ask_about_snapshots(); });
}

void Waits::ask_about_snapshots() {
  if (waiting_ == 0) return seen_.clear();  // the next wait begins anew
  asking_ = true;
  sessions_.ask({.commands = {{.statement = &question_}},
                 .done = lifetime_.guard([this](const Outcome& outcome, const Results& results) {
                   snapshots_answered(outcome, results);
                 })});
}

void Waits::snapshots_answered(const Outcome& outcome, const Results& results) {
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
void Waits::restart() {
  for (auto& [lock, line] : lines_) {
    if (line.session == nullptr || line.has_lock || !line.session->is_ready()) continue;
    leave_session(lock, line, Turn::last)->close();
  }
}

}  // namespace dlock::postgres

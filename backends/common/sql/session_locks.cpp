#include "backends/common/sql/session_locks.hpp"

#include <algorithm>
#include <utility>

#include <dlock/duration.hpp>

#include "backends/common/refusals.hpp"

namespace dlock::sql {

using std::chrono::nanoseconds;
using std::chrono::seconds;
using Status = TryOutcome::Status;

namespace {

// Waiters are notified when a try may succeed.
constexpr TryPolicy policy{.poll_min = seconds(30), .poll_max = seconds(60)};
// The interval between the tries of the first waiter of a lock without a session.
constexpr nanoseconds shortest_poll = seconds(1);
constexpr nanoseconds longest_poll = seconds(2);

}  // namespace

// One try, until it is answered.
struct SessionLocks::Attempt {
  Attempt(Executor& executor, const LockRequest& what, std::string of_lock, TryHandler then, TimePoint end)
      : request(what), lock(std::move(of_lock)), tried(std::move(then)), deadline(end), timer(executor) {}

  const LockRequest request;
  const std::string lock;  // SessionDialect::lock_of()
  TryHandler tried;        // empty once it is answered
  const TimePoint deadline;
  Timer timer;  // of the deadline, or of a pause before that
  Backoff backoff{seconds(1)};
  bool was_set_up = false;
  Failure trouble = {};                               // the last
  DedicatedSession* session = nullptr;                // tries just now; or
  std::shared_ptr<SharedTries::Ask> asked = nullptr;  // a try in the shared session
};

// An acquire whose destruction withdraws its try.
class SessionLocks::Acquire final : public Contention {
 public:
  Acquire(SessionLocks& locks, const OwnerId& owner, std::unique_ptr<Contention> contention)
      : locks_(locks), life_(locks.lifetime_.watch()), owner_(owner), contention_(std::move(contention)) {}
  ~Acquire() override {
    contention_.reset();
    if (!life_.over()) locks_.withdraw(owner_);
  }

 private:
  SessionLocks& locks_;
  const Lifetime::Watch life_;
  const OwnerId owner_;
  std::unique_ptr<Contention> contention_;
};

SessionLocks::SessionLocks(const Services& services, const Capabilities& capabilities, std::size_t max_connections,
                           std::unique_ptr<SessionDialect> dialect, const MakeTries& make_tries)
    : TryBackend(services.host, policy),
      services_(services),
      capabilities_(capabilities),
      max_connections_(max_connections),
      dialect_(std::move(dialect)),
      news_(services.host),
      observer_(news_),
      tries_(make_tries ? make_tries(observer_,
                                     [this] {
                                       if (closed_) assign_sessions_soon();
                                     })
                        : nullptr),
      waiters_(services.host.executor(), *this, dialect_->question_about_snapshots()) {
  if (FullServer* const full = services_.dialling.full) {
    full->holds_if([this] { return held() > 0 || (tries_ && tries_->holds_any()); });
  }
}

SessionLocks::~SessionLocks() = default;

// --- Tries -----------------------------------------------------------------------------------------------------------

std::unique_ptr<Contention> SessionLocks::contend(const LockRequest& request, GrantSink& sink) {
  const auto longest = capabilities_.max_lease;
  if (auto why = common::problem_with_lease(request.lease, longest, longest, "lease in the URL")) {
    return common::refuse(sink, *std::move(why));
  }
  return std::make_unique<Acquire>(*this, request.owner, TryBackend::contend(request, sink));
}

// Ends before the response timeout, to report the last failure: otherwise the caller would only see a timeout.
void SessionLocks::try_acquire(const LockRequest& request, TryHandler done) {
  Executor& executor = host().executor();
  const auto attempt =
      std::make_shared<Attempt>(executor, request, dialect_->lock_of(request.kind, request.name), std::move(done),
                                saturating_add(executor.now(), services_.dialling.response_timeout / 10 * 9));
  if (DedicatedSession* const session = waiters_.take(attempt->lock, request)) {
    return finish(attempt, {.status = Status::granted, .grant = session->hold(request.owner)});
  }
  if (auto why = waiters_.take_failure(attempt->lock, request)) return fail(attempt, *std::move(why));
  attempts_.insert_or_assign(request.owner, attempt);
  carry_out(attempt);
}

void SessionLocks::at(TimePoint time, const AttemptPtr& attempt,
                      void (SessionLocks::*then)(const AttemptPtr& attempt)) {
  attempt->timer.arm(time, [this, then, weak = std::weak_ptr(attempt)] {
    if (const auto still = weak.lock()) (this->*then)(still);
  });
}

void SessionLocks::carry_out(const AttemptPtr& attempt) {
  at(attempt->deadline, attempt, &SessionLocks::give_up);
  if (waiters_.in_server(attempt->lock)) return finish(attempt, {.status = Status::busy});
  if (!tries_) return try_on_session(attempt);
  attempt->asked =
      tries_->ask(attempt->request, [this, weak = std::weak_ptr(attempt)](TryOutcome outcome, Remedy remedy) {
        if (const auto asked = weak.lock()) answered(asked, std::move(outcome), remedy);
      });
}

void SessionLocks::answered(const AttemptPtr& attempt, TryOutcome outcome, Remedy remedy) {
  attempt->session = nullptr;
  attempt->asked.reset();
  const bool failed = outcome.status == Status::failed;
  if (failed && remedy == Remedy::retry) return retry(attempt, outcome.failure);
  if (failed && remedy == Remedy::set_up && !std::exchange(attempt->was_set_up, true)) {
    return set_up(attempt, outcome.failure);
  }
  finish(attempt, std::move(outcome));
}

void SessionLocks::retry(const AttemptPtr& attempt, const Failure& why) {
  attempt->trouble = why;
  const TimePoint again = saturating_add(host().executor().now(), attempt->backoff.next(host().executor()));
  if (again >= attempt->deadline) return fail(attempt, why);
  at(again, attempt, &SessionLocks::carry_out);
}

void SessionLocks::set_up(const AttemptPtr& attempt, const Failure& why) {
  attempt->trouble = why;
  services_.set_up(attempt->deadline, lifetime_.guard([this, attempt](const std::optional<Failure>& why_not) {
    if (!attempt->tried) return;
    why_not ? fail(attempt, *why_not) : carry_out(attempt);
  }));
}

// A grant that comes later is given back.
void SessionLocks::give_up(const AttemptPtr& attempt) {
  DedicatedSession* const session = std::exchange(attempt->session, nullptr);
  const bool sent = session != nullptr ? session->is_ready() : attempt->asked && tries_->withdraw(*attempt->asked);
  if (session != nullptr) session->close();
  if (attempt->trouble.code) return fail(attempt, {errc::unavailable, attempt->trouble.detail});
  fail(attempt, no_answer(sent ? errc::ambiguous : errc::unavailable));
}

// The caller has gone. A grant that comes later is given back.
void SessionLocks::withdraw(const OwnerId& owner) {
  const auto found = attempts_.find(owner);
  if (found == attempts_.end()) return;
  const auto attempt = found->second;
  if (attempt->session != nullptr) return;  // it is answered, and then released
  if (attempt->asked) (void)tries_->withdraw(*attempt->asked);
  fail(attempt, {errc::unavailable, "nobody waits for it"});
}

void SessionLocks::fail(const AttemptPtr& attempt, Failure why) {
  finish(attempt, {.status = Status::failed, .failure = std::move(why)});
}

void SessionLocks::finish(const AttemptPtr& attempt, TryOutcome outcome) {
  const auto tried = std::exchange(attempt->tried, nullptr);
  attempt->timer.disarm();
  const auto found = attempts_.find(attempt->request.owner);
  if (found != attempts_.end() && found->second == attempt) attempts_.erase(found);
  std::erase(want_session_, attempt);
  if (outcome.status == Status::granted) {
    waiters_.leave(attempt->lock, attempt->request.owner);
    if (attempt->request.mode == Mode::shared) waiters_.freed(attempt->lock, true);
  } else if (outcome.status == Status::busy && waiters_.has_no_place(attempt->lock)) {
    outcome.retry_after = random_between(shortest_poll, longest_poll, host().executor());
  }
  if (tried) tried(std::move(outcome));
}

// --- Waiting ---------------------------------------------------------------------------------------------------------

std::unique_ptr<Watch> SessionLocks::wait_for(const LockRequest& request, std::function<void()> changed) {
  return waiters_.watch(dialect_->lock_of(request.kind, request.name), request, std::move(changed));
}

std::size_t SessionLocks::waiting_here(LockKind kind, const std::string& name) const {
  return waiters_.in_client(dialect_->lock_of(kind, name));
}

std::size_t SessionLocks::most_waits() const {
  if (services_.dialling.makes_room()) return 0;
  const std::size_t limit = max_connections_;
  const std::size_t taken = held() + (tries_ ? 0 : 1);  // a try needs one
  return taken < limit ? limit - taken : 1;
}

DedicatedSession* SessionLocks::session_for_wait() {
  return want_session_.empty() ? take_session(true) : nullptr;
}

void SessionLocks::ask(Query query) {
  if (tries_) return tries_->ask(std::move(query));
  Commands& commands = services_.commands;
  commands.run(std::move(query), commands.answer_by(), MissingSchema::refuse, true);
}

// --- The end ---------------------------------------------------------------------------------------------------------

void SessionLocks::abandon(const LockRequest& /*request*/) {
  // A try that is not answered any more leaves nothing.
}

void SessionLocks::release(const Grant& grant, ReleaseHandler done) {
  struct Release {
    Release(Executor& executor, ReleaseHandler then) : timer(executor), done(std::move(then)) {}
    void answer(ReleaseOutcome outcome) {
      timer.disarm();
      if (const auto answered = std::exchange(done, nullptr)) answered(std::move(outcome));
    }
    Timer timer;
    ReleaseHandler done;
  };
  Executor& executor = host().executor();
  const auto release = std::make_shared<Release>(executor, std::move(done));
  release->timer.arm(
      saturating_add(executor.now(), services_.dialling.response_timeout), [this, weak = std::weak_ptr(release)] {
        const auto late = weak.lock();
        if (late) late->answer({.status = ReleaseOutcome::Status::failed, .failure = no_answer(errc::ambiguous)});
      });
  const auto answer = [release](ReleaseOutcome outcome) { release->answer(std::move(outcome)); };
  if (tries_ && tries_->release(grant.owner, answer)) {
    if (!waiters_.empty()) waiters_.freed(dialect_->lock_of(grant.kind, grant.name), false);
    return;
  }
  for (const auto& [session, owned] : sessions_) {
    if (owned->free(grant.owner, answer)) return;
  }
  answer({.status = ReleaseOutcome::Status::not_owner});
}

void SessionLocks::close(std::function<void()> done) {
  TryBackend::close([this, done = std::move(done)] {
    closed_ = done;
    report_if_quiet();
  });
}

void SessionLocks::report_if_quiet() {
  if (!closed_ || (tries_ && !tries_->quiet()) || free_.size() < sessions_.size()) return;
  const auto closed = std::exchange(closed_, nullptr);
  closed();
}

// --- Sessions --------------------------------------------------------------------------------------------------------

std::size_t SessionLocks::held() const {
  return static_cast<std::size_t>(
      std::count_if(sessions_.begin(), sessions_.end(), [](const auto& item) { return item.second->holds(); }));
}

// patient: a client that only waits leaves a full server's connections to others, and connects now and then.
DedicatedSession* SessionLocks::take_session(bool patient) {
  if (!free_.empty()) {
    DedicatedSession* const session = free_.back();
    free_.pop_back();
    return session;
  }
  const bool keeps_away = patient && services_.dialling.keeps_away();
  if (keeps_away || sessions_.size() >= max_connections_) return nullptr;
  auto session =
      std::make_unique<DedicatedSession>(services_.host, services_.dialling, *dialect_, capabilities_.max_lease,
                                         tries_ ? nullptr : &observer_, static_cast<DedicatedSession::User&>(*this));
  return sessions_.emplace(session.get(), std::move(session)).first->second.get();
}

Failure SessionLocks::no_answer(errc code) const {
  return {code, services_.dialling.endpoint + ": no answer in time"};
}

Failure SessionLocks::exhausted() const {
  if (services_.dialling.makes_room()) return services_.dialling.full->why();
  return {errc::unavailable, "max_connections=" + std::to_string(max_connections_) +
                                 ": every connection holds a lock or waits for one; raise max_connections in the URL"};
}

// If all sessions hold locks, it is unknown when one becomes free, and a try does not wait for that.
void SessionLocks::try_on_session(const AttemptPtr& attempt) {
  const bool waits = attempt->request.wait;
  DedicatedSession* session = want_session_.empty() ? take_session(waits) : nullptr;
  if (session == nullptr && waiters_.make_room()) session = take_session(waits);
  if (session != nullptr) return ask(*session, attempt);
  const bool all_hold = held() >= max_connections_;
  if (waits ? services_.dialling.keeps_away() : all_hold) return fail(attempt, exhausted());
  attempt->trouble = exhausted();
  want_session_.push_back(attempt);
}

void SessionLocks::ask(DedicatedSession& session, const AttemptPtr& attempt) {
  attempt->session = &session;
  session.ask(attempt->request, std::nullopt,
              [this, attempt](const TryOutcome& outcome, Remedy remedy) { answered(attempt, outcome, remedy); });
}

void SessionLocks::assign_sessions() {
  while (!want_session_.empty()) {
    const auto attempt = want_session_.front();
    DedicatedSession* const session = take_session(attempt->request.wait);
    if (session == nullptr) break;
    want_session_.pop_front();
    ask(*session, attempt);
  }
  waiters_.assign_sessions();
  report_if_quiet();
}

// In a task of its own, because sessions may be on the call stack.
void SessionLocks::assign_sessions_soon() {
  if (std::exchange(assigning_, true)) return;
  host().executor().post(lifetime_.guard([this] {
    assigning_ = false;
    over_.clear();
    assign_sessions();
  }));
}

void SessionLocks::session_free(DedicatedSession& session) {
  free_.push_back(&session);
  assign_sessions_soon();
}

void SessionLocks::session_over(DedicatedSession& session) {
  const auto found = sessions_.find(&session);
  if (found == sessions_.end()) return;
  waiters_.lost(session);
  std::erase(free_, &session);
  over_.push_back(std::move(found->second));
  sessions_.erase(found);
  assign_sessions_soon();
}

}  // namespace dlock::sql

#include "backends/postgres/session_locks/session_locks.hpp"

#include <algorithm>
#include <utility>

#include <dlock/duration.hpp>

#include "util/duration_text.hpp"

namespace dlock::postgres {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;
using std::chrono::seconds;
using Status = TryOutcome::Status;

namespace {

// Waiters are told when a try is worth it.
constexpr TryPolicy policy{.poll_min = seconds(30), .poll_max = seconds(60)};
// The first waiter of a lock that has no session to wait on looks so often.
constexpr nanoseconds shortest_look = seconds(1);
constexpr nanoseconds longest_look = seconds(2);
// A connection costs the server a process.
constexpr nanoseconds longest_free = seconds(10);

std::unique_ptr<SessionDialect> dialect_for(const Options& options, const AdvisorySql& advisory,
                                            const ForUpdateStatements& for_update) {
  if (options.strategy == Strategy::advisory) return advisory_dialect(options, advisory);
  return for_update_dialect(options, for_update);
}

}  // namespace

// One try, until it is answered.
struct SessionLocks::Attempt {
  Attempt(Executor& executor, const LockRequest& what, std::string of_lock, TryHandler then, TimePoint at_the_latest)
      : request(what),
        lock(std::move(of_lock)),
        done(std::move(then)),
        deadline(at_the_latest),
        end(executor),
        pause(executor) {}

  const LockRequest request;
  const std::string lock;  // lock_of() that
  TryHandler done;         // empty once it is answered
  const TimePoint deadline;
  Timer end;
  Timer pause;
  Backoff backoff{seconds(1)};
  bool was_set_up = false;
  Failure trouble = {};            // the last
  AdvisoryTries::Id advisory = 0;  // under way
  LockSession* session = nullptr;  // the same
};

// An acquire that takes its try with it when it goes, if that was not sent.
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

SessionLocks::SessionLocks(const Services& services, Limits limits)
    : TryBackend(services.host, policy),
      services_(services),
      limits_(limits),
      advisory_sql_(services.options),
      for_update_sql_(for_update_statements(services.options.schema, services.options.durability)),
      dialect_(dialect_for(services.options, advisory_sql_, for_update_sql_)),
      free_timer_(services.host.executor()),
      waits_(services.host.executor(), *this, limits.slices) {
  if (services.options.strategy == Strategy::advisory) {
    // Each session of a waiter's has one at most.
    const std::size_t others = std::min<std::size_t>(limits.advisory_locks - 1, services.options.max_connections);
    tries_.emplace(services.host, services.options, services.dialling, advisory_sql_, limits.advisory_locks - others,
                   [this] { report_if_quiet(); });
  }
  if (FullServer* const full = services_.dialling.full) {
    full->holds_if([this] { return !held_.empty() || (tries_ && tries_->holds_any()); });
  }
}

SessionLocks::~SessionLocks() = default;

Capabilities SessionLocks::capabilities() const noexcept {
  const bool advisory = services_.options.strategy == Strategy::advisory;
  return {
      .backend = "postgresql",
      .strategy = to_string(services_.options.strategy),
      .scope = Scope::network,
      .lease_kind = LeaseKind::session,
      .fencing = FencingDurability::wall_clock,
      // for-update: waiters are served in their order, but a newcomer may come in between, and waits are interrupted.
      .fair = advisory,
      .wakes_waiters = true,
      .wakes_one = true,
      .counts_waiters = true,
      .one_waiter_per_client = true,
      .max_locks = static_cast<std::uint32_t>(advisory ? limits_.advisory_locks : services_.options.max_connections),
      .read_write_locks = advisory,
      .elections = advisory,
      .can_inspect = true,
      .can_list = true,
      .can_break = true,
      .can_forget = true,
      .can_forget_idle = true,
      .min_lease = shortest_session_lease,
      .max_lease = services_.options.lease,
  };
}

std::string SessionLocks::lock_of(LockKind kind, const std::string& name) const {
  if (services_.options.strategy == Strategy::for_update) return name;
  return std::to_string(static_cast<int>(kind)) + ":" + lock_key(services_.options, name, kind).parameter;
}

// --- Tries -----------------------------------------------------------------------------------------------------------

std::unique_ptr<Contention> SessionLocks::contend(const LockRequest& request, GrantSink& sink) {
  if (request.lease <= services_.options.lease) {
    return std::make_unique<Acquire>(*this, request.owner, TryBackend::contend(request, sink));
  }
  sink.failed({errc::invalid_argument,
               "lease: " + util::to_text(request.lease) +
                   " is longer than the session lasts without its client; raise lease in the URL above " +
                   util::to_text(services_.options.lease)});
  return std::make_unique<Contention>();
}

// Ends in time to say what the trouble was. The caller would otherwise only learn that no answer came.
void SessionLocks::try_acquire(const LockRequest& request, TryHandler done) {
  const std::string lock = lock_of(request.kind, request.name);
  if (LockSession* const session = waits_.take(lock, request)) {
    return done({.status = Status::granted, .grant = hold(*session, request.owner)});
  }
  if (auto why = waits_.take_failure(lock, request))
    return done({.status = Status::failed, .failure = *std::move(why)});
  Executor& executor = host().executor();
  const nanoseconds patience = services_.dialling.response_timeout / 10 * 9;
  const auto attempt =
      std::make_shared<Attempt>(executor, request, lock, std::move(done), saturating_add(executor.now(), patience));
  attempts_.insert_or_assign(request.owner, attempt);
  attempt->end.arm(attempt->deadline, [this, weak = std::weak_ptr<Attempt>(attempt)] {
    if (const auto late = weak.lock()) give_up(late);
  });
  carry_out(attempt);
}

void SessionLocks::carry_out(const std::shared_ptr<Attempt>& attempt) {
  const LockRequest& request = attempt->request;
  if (waits_.in_server(attempt->lock)) return finish_busy(attempt);
  if (!tries_) return try_on_session(attempt);
  attempt->advisory = tries_->ask(request, lock_key(services_.options, request.name, request.kind, request.mode),
                                  [this, attempt](const TryAnswer& answer) { answered(attempt, answer); });
}

void SessionLocks::answered(const std::shared_ptr<Attempt>& attempt, const TryAnswer& answer) {
  attempt->advisory = 0;
  switch (answer.status) {
    case TryAnswer::Status::granted:
      return finish(attempt, {.status = Status::granted, .grant = answer.grant});
    case TryAnswer::Status::busy:
      return finish_busy(attempt);
    case TryAnswer::Status::failed:
      return failed(attempt, answer.remedy, answer.why);
  }
}

void SessionLocks::answered(const std::shared_ptr<Attempt>& attempt, const SessionAnswer& answer) {
  LockSession* const session = std::exchange(attempt->session, nullptr);
  switch (answer.status) {
    case SessionAnswer::Status::granted:
      return finish(attempt, {.status = Status::granted, .grant = hold(*session, attempt->request.owner)});
    case SessionAnswer::Status::busy:
      return finish_busy(attempt);
    case SessionAnswer::Status::failed:
      return failed(attempt, answer.remedy, answer.failure);
  }
}

void SessionLocks::failed(const std::shared_ptr<Attempt>& attempt, Remedy remedy, const Failure& why) {
  if (remedy == Remedy::retry) return retry(attempt, why);
  if (remedy == Remedy::set_up && !std::exchange(attempt->was_set_up, true)) return set_up(attempt, why);
  finish(attempt, {.status = Status::failed, .failure = why});
}

void SessionLocks::retry(const std::shared_ptr<Attempt>& attempt, const Failure& why) {
  attempt->trouble = why;
  const TimePoint at = saturating_add(host().executor().now(), attempt->backoff.next(host().executor()));
  if (at >= attempt->deadline) return finish(attempt, {.status = Status::failed, .failure = why});
  attempt->pause.arm(at, [this, weak = std::weak_ptr<Attempt>(attempt)] {
    if (const auto paused = weak.lock()) carry_out(paused);
  });
}

void SessionLocks::set_up(const std::shared_ptr<Attempt>& attempt, const Failure& why) {
  attempt->trouble = why;
  services_.schema.set_up(attempt->deadline, lifetime_.guard([this, attempt](const std::optional<Failure>& why_not) {
    if (!attempt->done) return;
    if (!why_not) return carry_out(attempt);
    finish(attempt, {.status = Status::failed, .failure = *why_not});
  }));
}

// What is granted later is given back.
void SessionLocks::give_up(const std::shared_ptr<Attempt>& attempt) {
  const bool sent = attempt->session != nullptr && attempt->session->is_ready();
  const bool sent_with_others = attempt->advisory != 0 && tries_->withdraw(std::exchange(attempt->advisory, 0));
  if (attempt->session != nullptr) std::exchange(attempt->session, nullptr)->close();
  Failure why{sent || sent_with_others ? errc::ambiguous : errc::unavailable,
              services_.options.endpoint() + ": no answer in time"};
  if (attempt->trouble.code) why = {errc::unavailable, attempt->trouble.detail};
  finish(attempt, {.status = Status::failed, .failure = std::move(why)});
  if (sent_with_others) tries_->overdue();
}

// Its caller has gone. What is granted later is given back.
void SessionLocks::withdraw(const OwnerId& owner) {
  const auto found = attempts_.find(owner);
  if (found == attempts_.end()) return;
  const auto attempt = found->second;
  if (attempt->session != nullptr) return;  // it is answered, and then released
  if (attempt->advisory != 0) (void)tries_->withdraw(std::exchange(attempt->advisory, 0));
  finish(attempt, {.status = Status::failed, .failure = {errc::unavailable, "nobody waits for it"}});
}

void SessionLocks::finish_busy(const std::shared_ptr<Attempt>& attempt) {
  TryOutcome outcome{.status = Status::busy};
  if (waits_.has_no_place(attempt->lock)) {
    outcome.retry_after = random_between(shortest_look, longest_look, host().executor());
  }
  finish(attempt, std::move(outcome));
}

void SessionLocks::finish(const std::shared_ptr<Attempt>& attempt, TryOutcome outcome) {
  const auto done = std::exchange(attempt->done, nullptr);
  attempt->end.disarm();
  attempt->pause.disarm();
  const auto found = attempts_.find(attempt->request.owner);
  if (found != attempts_.end() && found->second == attempt) attempts_.erase(found);
  std::erase(want_session_, attempt);
  if (outcome.status == Status::granted) {
    waits_.leave(attempt->lock, attempt->request.owner);
    if (attempt->request.mode == Mode::shared) waits_.freed(attempt->lock, true);
  }
  if (done) done(std::move(outcome));
}

// --- Waiting ---------------------------------------------------------------------------------------------------------

std::unique_ptr<Watch> SessionLocks::wait_for(const LockRequest& request, std::function<void()> changed) {
  return waits_.watch(lock_of(request.kind, request.name), request, std::move(changed));
}

std::size_t SessionLocks::waiting_here(LockKind kind, const std::string& name) const {
  return waits_.in_client(lock_of(kind, name));
}

std::size_t SessionLocks::most_waits() const {
  const FullServer* const full = services_.dialling.full;
  if (full != nullptr && full->makes_room()) return 0;
  const std::size_t limit = services_.options.max_connections;
  const std::size_t taken = held_.size() + (tries_ ? 0 : 1);  // a try needs one
  return taken < limit ? limit - taken : 1;
}

LockSession* SessionLocks::session_for_wait() {
  return take_session(true);
}

bool SessionLocks::hand_to_try(OwnerId waiter, LockSession& session) {
  const auto found = attempts_.find(waiter);
  if (found == attempts_.end()) return false;
  const auto attempt = found->second;
  LockSession* const taken = waits_.take(attempt->lock, attempt->request);
  if (taken != &session) return false;
  if (attempt->advisory != 0) (void)tries_->withdraw(std::exchange(attempt->advisory, 0));
  if (attempt->session != nullptr) std::exchange(attempt->session, nullptr)->close();
  finish(attempt, {.status = Status::granted, .grant = hold(session, waiter)});
  return true;
}

// --- What is held ----------------------------------------------------------------------------------------------------

Grant SessionLocks::hold(LockSession& session, const OwnerId& owner) {
  held_.insert_or_assign(owner, &session);
  return session.hold(owner);
}

void SessionLocks::abandon(const LockRequest& /*request*/) {
  // A try that is not answered any more leaves nothing.
}

void SessionLocks::release(const Grant& grant, ReleaseHandler done) {
  const auto id = ++last_release_;
  Timer& timer = releases_.try_emplace(id, host().executor(), std::move(done)).first->second.timer;
  timer.arm(saturating_add(host().executor().now(), services_.dialling.response_timeout), [this, id] {
    answer_release(id, {.status = ReleaseOutcome::Status::failed,
                        .failure = {errc::ambiguous, services_.options.endpoint() + ": no answer in time"}});
    if (tries_) tries_->overdue();
  });
  auto answer = lifetime_.guard([this, id](ReleaseOutcome outcome) { answer_release(id, std::move(outcome)); });
  const auto found = held_.find(grant.owner);
  if (found != held_.end()) {
    LockSession* const session = found->second;
    held_.erase(found);
    if (session->free(grant.owner, answer)) return;
  } else if (tries_ && tries_->release(grant.owner, answer)) {
    return waits_.freed(lock_of(grant.kind, grant.name), false);
  }
  answer_release(id, {.status = ReleaseOutcome::Status::not_owner});
}

void SessionLocks::answer_release(std::uint64_t id, ReleaseOutcome outcome) {
  const auto release = releases_.extract(id);
  if (release) release.mapped().done(std::move(outcome));
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

// What they ask goes where nothing delays it.
void SessionLocks::watch_snapshots() {
  snapshot_watch_.emplace(host().executor(),
                          SnapshotWatch::Waits{[this] { return waits_.waiting(); }, [this] { waits_.restart(); }},
                          [this](Query query) {
                            if (tries_) return tries_->ask(std::move(query));
                            Commands& commands = services_.commands;
                            commands.run(std::move(query), commands.answer_by(), MissingSchema::refuse, true);
                          });
  waits_.when_one_begins([this] { snapshot_watch_->began(); });
}

// --- Sessions --------------------------------------------------------------------------------------------------------

LockSession* SessionLocks::take_session(bool patient) {
  if (!free_.empty()) {
    LockSession* const session = free_.back().session;
    free_.pop_back();
    return session;
  }
  if (sessions_.size() >= services_.options.max_connections || (patient && keeps_away())) return nullptr;
  auto session = std::make_unique<LockSession>(host(), services_.options, services_.dialling, *dialect_,
                                               static_cast<LockSession::User&>(*this));
  return sessions_.emplace(session.get(), std::move(session)).first->second.get();
}

// A client that only waits leaves a full server's connections to others, and connects now and then.
bool SessionLocks::keeps_away() const {
  const FullServer* const full = services_.dialling.full;
  return full != nullptr && full->makes_room() && host().executor().now() < full->next();
}

Failure SessionLocks::exhausted() const {
  const FullServer* const full = services_.dialling.full;
  if (full != nullptr && full->makes_room()) return full->why();
  return {errc::unavailable, "max_connections=" + std::to_string(services_.options.max_connections) +
                                 ": every connection holds a lock or waits for one; raise max_connections in the URL"};
}

// Where all of them hold locks, it is unknown when one comes free, and a try does not wait for that.
void SessionLocks::try_on_session(const std::shared_ptr<Attempt>& attempt) {
  LockSession* const session = want_session_.empty() ? take_session(attempt->request.wait) : nullptr;
  if (session == nullptr) {
    const bool all_hold = held_.size() >= services_.options.max_connections;
    if (attempt->request.wait ? keeps_away() : all_hold) {
      return finish(attempt, {.status = Status::failed, .failure = exhausted()});
    }
    attempt->trouble = exhausted();
    want_session_.push_back(attempt);
    (void)waits_.make_room();
    return serve_soon();
  }
  attempt->session = session;
  session->ask(attempt->request, std::nullopt,
               [this, attempt](const SessionAnswer& answer) { answered(attempt, answer); });
}

void SessionLocks::serve() {
  while (!want_session_.empty()) {
    LockSession* const session = take_session(want_session_.front()->request.wait);
    if (session == nullptr) break;
    const auto attempt = std::move(want_session_.front());
    want_session_.pop_front();
    attempt->session = session;
    session->ask(attempt->request, std::nullopt,
                 [this, attempt](const SessionAnswer& answer) { answered(attempt, answer); });
  }
  waits_.room();
  report_if_quiet();
}

// As a task of its own, because the code that let go of a session is in the middle of something.
void SessionLocks::serve_soon() {
  if (std::exchange(serving_, true)) return;
  host().executor().post(lifetime_.guard([this] {
    serving_ = false;
    over_.clear();
    serve();
  }));
}

void SessionLocks::session_free(LockSession& session) {
  const TimePoint now = host().executor().now();
  forget_holder(session);
  free_.push_back({&session, now});
  if (!free_timer_.armed()) free_timer_.arm(saturating_add(now, longest_free), [this] { drop_old(); });
  serve_soon();
}

void SessionLocks::session_over(LockSession& session) {
  const auto found = sessions_.find(&session);
  if (found == sessions_.end()) return;
  forget_holder(session);
  waits_.lost(session);
  std::erase_if(free_, [&](const Free& each) { return each.session == &session; });
  over_.push_back(std::move(found->second));
  sessions_.erase(found);
  serve_soon();
}

// Of strategy=advisory the session of the tries is what the observer is told about.
void SessionLocks::session_connected() {
  if (tries_ || std::exchange(connected_, true)) return;
  host().connection({.state = ConnectionEvent::State::connected, .reason = {}});
}

void SessionLocks::session_broken(const Failure& why) {
  if (!std::exchange(connected_, false)) return;
  host().connection({.state = ConnectionEvent::State::reconnecting, .reason = why});
}

void SessionLocks::forget_holder(const LockSession& session) {
  std::erase_if(held_, [&](const auto& item) { return item.second == &session; });
}

void SessionLocks::drop_old() {
  const TimePoint now = host().executor().now();
  while (!free_.empty() && now >= saturating_add(free_.front().since, longest_free)) free_.front().session->close();
  if (!free_.empty()) free_timer_.arm(saturating_add(free_.front().since, longest_free), [this] { drop_old(); });
}

}  // namespace dlock::postgres

#include "backends/postgres/session_locks/lock_session.hpp"

#include <algorithm>
#include <utility>

#include <dlock/duration.hpp>

#include "backends/postgres/options.hpp"
#include "util/names.hpp"

namespace dlock::postgres {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;
using Status = TryAnswer::Status;

namespace {

// A grant counts from when it was asked for. If that is longer ago than this part of the lease, the session is asked
// whether it still stands, and the lease counts from that question.
constexpr int fresh_part_of_lease = 4;
// Another client inserts the same row just now. Mostly that takes a moment; but it may be a transaction of a program's
// own that takes the lock for the first time, and keeps it.
constexpr milliseconds insertion_patience{200};
constexpr int most_insertions = 3;

}  // namespace

LockSession::LockSession(BackendHost& host, const Options& options, const Dialling& dialling,
                         const SessionDialect& dialect, User& user)
    : SessionHolds(host, "PostgreSQL"),
      options_(options),
      dialling_(dialling),
      dialect_(dialect),
      user_(user),
      session_(host.executor(), dialling, dialect.purpose(), Upkeep::once, *this) {}

LockSession::~LockSession() = default;

// --- Asking ----------------------------------------------------------------------------------------------------------

void LockSession::ask(const LockRequest& request, SessionDialect::Patience patience, Handler done) {
  request_ = request;
  patience_ = patience;
  done_ = std::move(done);
  insertions_ = 0;
  state_ = State::asking;
  send();
}

void LockSession::send() {
  auto commands = dialect_.ask(request_, patience_, used_);
  used_ = true;
  request(std::move(commands), patience_.has_value(), &LockSession::answered);
}

void LockSession::request(std::vector<Command> commands, bool blocks,
                          void (LockSession::*answer)(const Outcome&, const Results&)) {
  nanoseconds patience = dialling_.response_timeout;
  if (!session_.ready()) patience += dialling_.connect_timeout;
  if (blocks) patience += patience_.value_or(insertion_patience);
  (void)session_.request(
      {.query = {.commands = std::move(commands),
                 .done = [this, answer](const Outcome& outcome,
                                        const Results& results) { (this->*answer)(outcome, results); }},
       .deadline = saturating_add(host_.executor().now(), patience),
       .blocks = blocks});
}

void LockSession::answered(const Outcome& outcome, const Results& results) {
  if (state_ != State::asking) return;
  if (outcome.problem != Problem::none) return problem(outcome, patience_.has_value());
  const SessionDialect::Reply reply = dialect_.read(results, session_.server());
  if (reply.no_row) {
    if (++insertions_ > most_insertions) {
      return fail(Remedy::final,
                  {errc::protocol, "another client keeps removing the row of lock " + util::quoted(request_.name)});
    }
    auto commands = dialect_.prepare(request_, patience_.value_or(insertion_patience), used_);
    used_ = false;
    return request(std::move(commands), true, &LockSession::prepared);
  }
  if (!reply.token || *reply.token <= 0) {
    // Whichever session got the lock: perhaps what gives it back comes to the same one.
    is_unfit_ = true;
    state_ = State::busy;
    return answer({.why = dialect_.senseless(request_, session_.server())});
  }
  token_ = FencingToken(static_cast<std::uint64_t>(*reply.token));
  grant(outcome.sent);
}

void LockSession::prepared(const Outcome& outcome, const Results& /*results*/) {
  if (state_ != State::asking) return;
  if (outcome.problem != Problem::none) return problem(outcome, true);
  send();
}

void LockSession::grant(TimePoint sent) {
  if (host_.executor().now() >= saturating_add(sent, options_.lease / fresh_part_of_lease)) {
    return request({{.text = heartbeat_sql}}, false, &LockSession::confirmed);
  }
  sent_ = sent;
  state_ = State::granted;
  answer({.status = Status::granted});
}

void LockSession::confirmed(const Outcome& outcome, const Results& /*results*/) {
  if (state_ != State::asking) return;
  if (outcome.problem != Problem::none) return fail(Remedy::reconnect, outcome.failure);
  grant(outcome.sent);
}

void LockSession::problem(const Outcome& outcome, bool waited) {
  if (outcome.problem == Problem::refused && dialect_.is_busy(outcome, waited)) {
    state_ = State::busy;
    return answer({.status = Status::busy});
  }
  const Remedy remedy = meaning_of(outcome).remedy;
  const Failure why = failure_of(outcome, options_.schema);
  if (outcome.problem != Problem::refused || remedy == Remedy::reconnect) {
    return fail(outcome.problem == Problem::refused ? Remedy::retry : remedy, why);
  }
  state_ = State::busy;
  answer({.status = Status::failed, .remedy = remedy, .why = why});
}

void LockSession::answer(const TryAnswer& answer) {
  const Handler done = std::exchange(done_, nullptr);
  const Lifetime::Watch life = lifetime_.watch();
  if (done) done(answer);
  // The handler neither asked again nor closed the session.
  if (!life.over() && state_ == State::busy) clean();
}

// --- What it has -----------------------------------------------------------------------------------------------------

Grant LockSession::hold(const OwnerId& owner) {
  state_ = State::held;
  Grant grant{.name = request_.name,
              .owner = owner,
              .token = token_,
              .valid_until = lease_valid_until(sent_, options_.lease),
              .lease = request_.lease,
              .kind = request_.kind,
              .mode = request_.mode};
  add(grant, request_);
  return grant;
}

bool LockSession::free(const OwnerId& owner, ReleaseHandler done) {
  using Released = ReleaseOutcome::Status;
  if (!take(owner)) return false;
  state_ = State::freeing;
  Query query{.commands = {dialect_.free(request_)}};
  query.done = [this, done = std::move(done)](const Outcome& outcome, const Results& results) {
    const bool refused_or_unknown = outcome.problem == Problem::refused || outcome.problem == Problem::unknown_outcome;
    ReleaseOutcome released{.status = Released::not_owner};  // it went with the session
    if (outcome.problem == Problem::none && dialect_.was_held(results)) released.status = Released::released;
    if (refused_or_unknown && !is_end_of_session(outcome)) {
      released = {.status = Released::failed, .failure = failure_of(outcome, options_.schema)};
    }
    cleaned(outcome, results);
    done(std::move(released));
  };
  (void)session_.request(std::move(query), saturating_add(host_.executor().now(), dialling_.response_timeout));
  return true;
}

void LockSession::clean() {
  if (state_ == State::over) return;
  state_ = State::freeing;
  request({dialect_.clean(request_)}, false, &LockSession::cleaned);
}

// Without an answer it is unknown what the session has; with the connection, that ends.
void LockSession::cleaned(const Outcome& outcome, const Results& /*results*/) {
  if (state_ != State::freeing) return;
  if (outcome.problem != Problem::none || is_unfit_) return end();
  used_ = false;
  state_ = State::free;
  user_.session_free(*this);
}

void LockSession::remove(const OwnerId& /*owner*/, LockRequest /*request*/) {
  if (state_ == State::held) clean();
}

// --- The session -----------------------------------------------------------------------------------------------------

void LockSession::session_ready() {
  if (const auto problem = dialect_.unfit(session_.server())) {
    const bool final = problem->code != errc::unavailable;
    fail(final ? Remedy::final : Remedy::reconnect, *problem);
  }
}

void LockSession::session_alive(TimePoint sent) {
  SessionHolds::session_alive(lease_valid_until(sent, options_.lease));
}

// The lock goes with the session: nothing is given back before the holder knows.
void LockSession::session_ending(const Failure& why) {
  const Lifetime::Watch life = lifetime_.watch();
  if (state_ == State::held) state_ = State::freeing;
  session_lost(why);
  if (!life.over()) fail(Remedy::reconnect, why);
}

void LockSession::session_down(const Failure& why, bool /*was_ready*/) {
  const Lifetime::Watch life = lifetime_.watch();
  if (state_ == State::held) state_ = State::freeing;
  session_lost(why);
  if (life.over()) return;
  fail(meaning_of(Outcome{.problem = Problem::not_sent, .failure = why}).remedy, why);
}

void LockSession::fail(Remedy remedy, const Failure& why) {
  if (state_ == State::over) return;
  // It may belong to the session. NOLINTNEXTLINE(performance-unnecessary-copy-initialization)
  const Failure reason = why;
  end();
  if (remedy == Remedy::reconnect) user_.session_broken(reason);
  answer({.status = Status::failed, .remedy = remedy, .why = reason});
}

void LockSession::close() {
  done_ = nullptr;
  end();
}

void LockSession::end() {
  if (state_ == State::over) return;
  state_ = State::over;
  session_.stop();
  user_.session_over(*this);
}

}  // namespace dlock::postgres

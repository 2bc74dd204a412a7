#include "backends/common/sql/dedicated_session.hpp"

#include <algorithm>
#include <utility>

#include <dlock/duration.hpp>

#include "util/names.hpp"

namespace dlock::sql {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;
using Status = TryOutcome::Status;

namespace {

// The lease counts from when the request was sent. If that is longer ago than this part of the lease, a further query
// confirms the session, and the lease counts from when that was sent.
constexpr int fresh_part_of_lease = 4;
// Another client inserts the same row just now. Mostly that takes a moment; but it may be a transaction of a program's
// own that takes the lock for the first time, and keeps it.
constexpr nanoseconds insertion_patience = milliseconds(200);
constexpr int most_insertions = 3;
// A connection costs the server a process.
constexpr nanoseconds longest_free = std::chrono::seconds(10);

}  // namespace

DedicatedSession::DedicatedSession(BackendHost& host, const Dialling& dialling, const SessionDialect& dialect,
                                   nanoseconds lease, common::ConnectionObserver* observer, User& user)
    : SessionHolds(host, dialling.dialect.service()),
      dialling_(dialling),
      dialect_(dialect),
      lease_(lease),
      observer_(observer),
      user_(user),
      free_timer_(host.executor()),
      session_(host.executor(), dialling_, {.word = dialect.word(), .session_lease = lease}, Upkeep::once, *this) {}

DedicatedSession::~DedicatedSession() = default;

// --- Asking ----------------------------------------------------------------------------------------------------------

void DedicatedSession::ask(const LockRequest& request, SessionDialect::Patience patience, AnswerHandler done) {
  request_ = request;
  patience_ = patience;
  done_ = std::move(done);
  insertions_ = 0;
  state_ = State::asking;
  free_timer_.disarm();
  send();
}

void DedicatedSession::send() {
  auto commands = dialect_.ask(request_, patience_, used_);
  used_ = true;
  request(std::move(commands), patience_, &DedicatedSession::answered);
}

void DedicatedSession::request(std::vector<Command> commands, SessionDialect::Patience waits, Answered done) {
  nanoseconds patience = dialling_.response_timeout + waits.value_or(nanoseconds(0));
  if (!session_.ready()) patience += dialling_.connect_timeout;
  (void)session_.request({.query = {.commands = std::move(commands),
                                    .done = [this, done](const Outcome& outcome,
                                                         const Results& results) { (this->*done)(outcome, results); }},
                          .deadline = saturating_add(host_.executor().now(), patience),
                          .blocks = waits.has_value()});
}

void DedicatedSession::answered(const Outcome& outcome, const Results& results) {
  if (state_ != State::asking) return;
  if (outcome.problem != Problem::none) return problem(outcome, patience_.has_value());
  SessionDialect::Reply reply = dialect_.read(results, session_.server());
  const std::string name = util::quoted(request_.name);
  if (reply.no_row) {
    if (++insertions_ > most_insertions) {
      return fail({errc::protocol, "another client keeps removing the row of lock " + name}, Remedy::final);
    }
    const nanoseconds wait = patience_.value_or(insertion_patience);
    auto commands = dialect_.prepare(request_, wait, std::exchange(used_, false));
    return request(std::move(commands), wait, &DedicatedSession::prepared);
  }
  if (reply.busy) return answer({.status = Status::busy});
  if (!reply.why.code && reply.token <= 0) {
    reply.why = {errc::protocol, "the token of lock " + name + " is not a positive number"};
  }
  if (reply.why.code) {
    // Another session may have got the lock; with luck, its release reaches the same one.
    is_unfit_ = true;
    return answer({.status = Status::failed, .failure = reply.why});
  }
  token_ = FencingToken(static_cast<std::uint64_t>(reply.token));
  grant(outcome.sent);
}

void DedicatedSession::prepared(const Outcome& outcome, const Results& /*results*/) {
  if (state_ != State::asking) return;
  if (outcome.problem != Problem::none) return problem(outcome, true);
  send();
}

void DedicatedSession::grant(TimePoint sent) {
  if (host_.executor().now() >= saturating_add(sent, lease_ / fresh_part_of_lease)) {
    return request({{.text = dialling_.dialect.heartbeat()}}, std::nullopt, &DedicatedSession::confirmed);
  }
  sent_ = sent;
  state_ = State::parked;
  answer({.status = Status::granted, .grant = patience_ ? Grant{} : hold(request_.owner)});
}

void DedicatedSession::confirmed(const Outcome& outcome, const Results& /*results*/) {
  if (state_ != State::asking) return;
  if (outcome.problem != Problem::none) return fail(outcome.failure, Remedy::reconnect);
  grant(outcome.sent);
}

void DedicatedSession::problem(const Outcome& outcome, bool waited) {
  Remedy remedy = dialling_.dialect.meaning_of(outcome).remedy;
  Failure why = dialling_.dialect.failure_of(outcome);
  if (remedy == Remedy::busy && !dialect_.refuses_busy_locks()) {
    remedy = Remedy::retry;
    why.code = errc::unavailable;
  }
  const bool is_refused = outcome.problem == Problem::refused;
  if (is_refused && (remedy == Remedy::busy || (waited && dialling_.dialect.is_end_of_patience(outcome)))) {
    return answer({.status = Status::busy});
  }
  if (is_refused && remedy != Remedy::reconnect) {
    return answer({.status = Status::failed, .failure = why}, remedy);
  }
  fail(why, is_refused ? Remedy::retry : remedy);
}

void DedicatedSession::answer(const TryOutcome& outcome, Remedy remedy) {
  if (state_ == State::asking) state_ = State::busy;
  const AnswerHandler done = std::exchange(done_, nullptr);
  const Lifetime::Watch life = lifetime_.watch();
  if (done) done(outcome, remedy);
  // The handler neither asked again nor closed the session.
  if (!life.over() && state_ == State::busy) clean();
}

// --- What it has -----------------------------------------------------------------------------------------------------

Grant DedicatedSession::hold(const OwnerId& owner) {
  state_ = State::held;
  Grant grant{.name = request_.name,
              .owner = owner,
              .token = token_,
              .valid_until = lease_valid_until(sent_, lease_),
              .lease = request_.lease,
              .kind = request_.kind,
              .mode = request_.mode};
  add(grant, request_);
  return grant;
}

bool DedicatedSession::free(const OwnerId& owner, ReleaseHandler done) {
  if (!take(owner)) return false;
  released_ = std::move(done);
  give_back(dialect_.free(request_));
  return true;
}

void DedicatedSession::clean() {
  if (state_ != State::over) give_back(dialect_.clean(request_));
}

void DedicatedSession::give_back(Command command) {
  state_ = State::freeing;
  request({std::move(command)}, std::nullopt, &DedicatedSession::cleaned);
}

// Without an answer, it is unknown whether the session has the lock; closing the connection frees it.
void DedicatedSession::cleaned(const Outcome& outcome, const Results& results) {
  using Released = ReleaseOutcome::Status;
  const ReleaseHandler done = std::exchange(released_, nullptr);
  ReleaseOutcome released{.status = Released::not_owner};  // the lock ended with the session
  const bool is_known = outcome.problem == Problem::none || outcome.problem == Problem::not_sent;
  if (!is_known && !is_end_of_session(outcome)) {
    released = {.status = Released::failed, .failure = dialling_.dialect.failure_of(outcome)};
  } else if (outcome.problem == Problem::none && (results.front().empty() || results.front().flag(0, 0))) {
    released.status = Released::released;
  }
  if (state_ == State::freeing && (outcome.problem != Problem::none || is_unfit_)) {
    end();
  } else if (state_ == State::freeing) {
    used_ = false;
    state_ = State::free;
    free_timer_.arm(saturating_add(host_.executor().now(), longest_free), [this] { close(); });
    user_.session_free(*this);
  }
  if (done) done(std::move(released));
}

void DedicatedSession::remove(const OwnerId& /*owner*/, LockRequest /*request*/) {
  if (state_ == State::held) clean();
}

// --- The session -----------------------------------------------------------------------------------------------------

void DedicatedSession::session_ready() {
  const ServerInfo& server = session_.server();
  if (const auto why = dialling_.dialect.unfit_for_locks(server)) return fail(*why, Remedy::final);
  if (server.standby) {
    fail({errc::unavailable, server.endpoint + ": it is a standby; locks need the primary"}, Remedy::reconnect);
  }
}

void DedicatedSession::session_alive(TimePoint sent) {
  SessionHolds::session_alive(lease_valid_until(sent, lease_));
}

void DedicatedSession::session_down(const Failure& why, bool /*was_ready*/) {
  lose(why, dialling_.dialect.meaning_of(Outcome{.problem = Problem::not_sent, .failure = why}).remedy);
}

// The session's end frees the lock: nothing is given back before the holder is notified.
void DedicatedSession::lose(const Failure& why, Remedy remedy) {
  const Lifetime::Watch life = lifetime_.watch();
  if (state_ == State::held) state_ = State::freeing;
  session_lost(why);
  if (!life.over()) fail(why, remedy);
}

void DedicatedSession::fail(const Failure& why, Remedy remedy) {
  if (state_ == State::over) return;
  // It may belong to the session. NOLINTNEXTLINE(performance-unnecessary-copy-initialization)
  const Failure reason = why;
  end();
  if (observer_ != nullptr && remedy == Remedy::reconnect) observer_->broken(reason);
  if (released_) return cleaned({.problem = Problem::unknown_outcome, .failure = reason}, {});
  answer({.status = Status::failed, .failure = reason}, remedy);
}

void DedicatedSession::close() {
  done_ = nullptr;
  end();
}

void DedicatedSession::end() {
  if (state_ == State::over) return;
  state_ = State::over;
  session_.stop();
  user_.session_over(*this);
}

}  // namespace dlock::sql

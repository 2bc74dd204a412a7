#include "backends/postgres/session_locks/member_lock.hpp"

#include <string>
#include <utility>

#include <dlock/duration.hpp>

#include "backends/postgres/sessions/session_fitness.hpp"

namespace dlock::postgres {

using std::chrono::nanoseconds;

namespace {

// A grant counts from when it was asked for. If that is longer ago than this part of the lease, the session is asked
// whether it still stands, and the lease counts from that question.
constexpr int fresh_part_of_lease = 4;

}  // namespace

MemberLock::MemberLock(const Common& common, LockRequest request, LockKey key, Waiter& waiter)
    : common_(common),
      request_(std::move(request)),
      key_(std::move(key)),
      waiter_(&waiter),
      kept_(common.host, common.options.lease) {}

MemberLock::~MemberLock() = default;

void MemberLock::begin(std::unique_ptr<Pool::Member> member) {
  member_ = std::move(member);
  if (session().ready()) session_ready();
}

void MemberLock::session_ready() {
  if (state_ != State::connecting) return;
  if (const auto problem = unfit_for_locks(session().server())) return fail(Remedy::final, *problem);
  wait();
}

// --- Waiting ---------------------------------------------------------------------------------------------------------

void MemberLock::wait() {
  state_ = State::waiting;
  const nanoseconds slice = common_.slice(*waiter_);
  const auto ms = std::chrono::ceil<std::chrono::milliseconds>(slice).count();
  Query query{.commands = {{.statement = &common_.sql.of(key_).lock_slice,
                            .params = {key_.parameter, token_row(common_.options, request_.name), holder_text(request_),
                                       std::to_string(ms)}}},
              .done = [this](const Outcome& outcome, const Results& results) { waited(outcome, results); }};
  const TimePoint deadline = saturating_add(saturating_add(executor().now(), slice), common_.response_timeout);
  (void)session().request({.query = std::move(query), .deadline = deadline, .blocks = true});
}

void MemberLock::waited(const Outcome& outcome, const Results& results) {
  if (state_ != State::waiting) return;
  if (outcome.problem == Problem::refused) return refused(outcome);
  if (outcome.problem != Problem::none) return fail(Remedy::reconnect, outcome.failure);
  const Rows none;
  const Rows& rows = results.empty() ? none : results.front();
  const auto token = rows.number(0, 0);
  if (!token || *token <= 0 || rows.number(0, 1) != session().server().backend_pid) {
    const Failure why = other_session(session().server());
    // Whichever session got the lock: perhaps the unlock comes to the same one.
    fit_ = false;
    unlock(nullptr);
    return std::exchange(waiter_, nullptr)->member_failed(Remedy::final, why);
  }
  token_ = FencingToken(static_cast<std::uint64_t>(*token));
  const TimePoint stale = saturating_add(outcome.sent, common_.options.lease / fresh_part_of_lease);
  if (executor().now() < stale) return granted(outcome.sent);
  confirm();
}

// A refusal rolls back the rows but not the lock: an error may come after it, and a lock_timeout in the moment of the
// grant. So it is unlocked, whatever that answers.
void MemberLock::refused(const Outcome& outcome) {
  const Meaning meaning = meaning_of(outcome);
  if (meaning.remedy == Remedy::busy && !common_.stays(*waiter_)) {
    unlock(nullptr);
    return std::exchange(waiter_, nullptr)->member_yielded();
  }
  if (meaning.remedy == Remedy::busy) {  // the slice has ended
    Query query{.commands = {{.statement = &common_.sql.of(key_).unlock, .params = {key_.parameter}}},
                .done = [this](const Outcome& answer, const Results&) {
                  // Then it is unknown what the session has.
                  if (answer.problem == Problem::refused) fail(Remedy::reconnect, answer.failure);
                }};
    (void)session().request(std::move(query), TimePoint::max());
    return wait();
  }
  const Failure why = failure_of(outcome, common_.options.schema);
  const bool reconnect = meaning.remedy == Remedy::reconnect;
  fit_ = !reconnect;
  unlock(nullptr);
  std::exchange(waiter_, nullptr)->member_failed(reconnect ? Remedy::retry : meaning.remedy, why);
}

void MemberLock::confirm() {
  state_ = State::confirming;
  Query query{.commands = {{.text = heartbeat_sql}}, .done = [this](const Outcome& outcome, const Results&) {
                if (state_ != State::confirming) return;
                if (outcome.problem == Problem::none) return granted(outcome.sent);
                fail(Remedy::reconnect, outcome.failure);
              }};
  (void)session().request(std::move(query), saturating_add(executor().now(), common_.response_timeout));
}

// --- Holding ---------------------------------------------------------------------------------------------------------

void MemberLock::granted(TimePoint sent) {
  state_ = State::held;
  const Grant grant{.name = request_.name,
                    .owner = request_.owner,
                    .token = token_,
                    .valid_until = lease_valid_until(sent, common_.options.lease),
                    .lease = request_.lease,
                    .kind = request_.kind,
                    .mode = request_.mode};
  kept_.add(grant, key_);
  std::exchange(waiter_, nullptr)->member_granted(grant);
}

void MemberLock::session_alive(TimePoint sent) {
  if (!kept_.session_alive(sent).empty()) unlock(nullptr);
}

bool MemberLock::release(Backend::ReleaseHandler done) {
  if (!kept_.take(request_.owner)) return false;
  unlock(std::move(done));
  return true;
}

void MemberLock::unlock(Backend::ReleaseHandler done) {
  using Status = ReleaseOutcome::Status;
  state_ = State::unlocking;
  Query query{.commands = {{.statement = &common_.sql.of(key_).unlock, .params = {key_.parameter}}}};
  query.done = [this, done = std::move(done)](const Outcome& outcome, const Results& results) {
    const auto answer = [&done](ReleaseOutcome released) {
      if (done) done(std::move(released));
    };
    end(outcome.problem == Problem::none && fit_);  // the end of the connection frees the lock, too
    if (outcome.problem == Problem::none) {
      const bool freed = !results.empty() && results.front().flag(0, 0);
      return answer({.status = freed ? Status::released : Status::not_owner});
    }
    if (outcome.problem == Problem::not_sent) return answer({.status = Status::not_owner});
    answer({.status = Status::failed, .failure = failure_of(outcome, common_.options.schema)});
  };
  (void)session().request(std::move(query), saturating_add(executor().now(), common_.response_timeout));
}

// --- The end ---------------------------------------------------------------------------------------------------------

void MemberLock::session_down(const Failure& why, bool /*was_ready*/) {
  kept_.lose_all(why);
  // What is being unlocked has been answered.
  if (state_ != State::over) fail(meaning_of(Outcome{.problem = Problem::not_sent, .failure = why}).remedy, why);
}

void MemberLock::abandon() {
  waiter_ = nullptr;
  // A server that looks after its clients (client_connection_check_interval, PostgreSQL 14) takes the wait out of its
  // queue within half a second. An older one finds out when it grants the lock, and frees it at once.
  if (state_ != State::unlocking) end(false);
}

void MemberLock::fail(Remedy remedy, const Failure& why) {
  if (state_ == State::over) return;
  // It may belong to the session. NOLINTNEXTLINE(performance-unnecessary-copy-initialization)
  const Failure reason = why;
  kept_.lose_all(reason);
  end(false);
  if (Waiter* const waiter = std::exchange(waiter_, nullptr)) waiter->member_failed(remedy, reason);
}

void MemberLock::end(bool reusable) {
  if (state_ == State::over) return;
  state_ = State::over;
  reusable_ = reusable;
  common_.over(*this);
}

std::unique_ptr<Pool::Member> MemberLock::take_member() {
  return reusable_ ? std::move(member_) : nullptr;
}

}  // namespace dlock::postgres

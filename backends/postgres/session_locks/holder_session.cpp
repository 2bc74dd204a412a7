#include "backends/postgres/session_locks/holder_session.hpp"

#include <algorithm>
#include <string_view>
#include <utility>

#include <dlock/duration.hpp>

#include "backends/postgres/sessions/session_fitness.hpp"

namespace dlock::postgres {

using std::chrono::nanoseconds;

namespace {

// A try waits only if another client has locked its token's row, or the table. Then it ends soon, because all other
// locks of the session wait with it. It may wait more than once, and is followed by what is under way already.
constexpr nanoseconds longest_lock_patience = std::chrono::milliseconds(250);
constexpr int lock_patiences_per_lease = 20;

Purpose purpose_of(nanoseconds lease) {
  return {.word = "locks",
          .session_lease = lease,
          .lock_patience = std::min(longest_lock_patience, lease / lock_patiences_per_lease)};
}

}  // namespace

HolderSession::HolderSession(BackendHost& host, const Options& options, const Dialling& dialling,
                             const AdvisorySql& sql, Limit limit, common::ConnectionNews& news,
                             std::function<void()> when_quiet)
    : host_(host),
      executor_(host.executor()),
      options_(options),
      sql_(sql),
      response_timeout_(dialling.response_timeout),
      limit_(std::move(limit)),
      when_quiet_(std::move(when_quiet)),
      kept_(host, options.lease),
      news_(news),
      timer_(executor_),
      session_(executor_, dialling, purpose_of(options.lease), Upkeep::kept_up, *this) {}

HolderSession::~HolderSession() = default;

HolderSession::TryId HolderSession::ask(const LockRequest& request, const LockKey& key, Asker& asker) {
  const TryId id = ++last_try_;
  tries_.emplace(id, Try{request, key, &asker});
  pending_.insert(id);
  session_.want(request.wait);
  pump();
  deliver_soon();
  return id;
}

void HolderSession::ask(Query query) {
  (void)session_.request(
      {.query = std::move(query), .deadline = saturating_add(executor_.now(), response_timeout_), .patient = true});
}

bool HolderSession::excludes(const LockKey& key) const {
  const auto found = held_.find(key);
  if (found == held_.end()) return false;
  return key.mode == Mode::exclusive || found->first.mode == Mode::exclusive;
}

void HolderSession::withdraw(TryId id) {
  (void)tries_.erase(id);
  (void)pending_.erase(id);
}

// What can go out now, goes.
void HolderSession::pump() {
  if (!session_.ready()) return;
  std::vector<Group> groups;
  if (refusal_) {
    fail_pending(Remedy::final, *refusal_);
  } else if (try_flights_ == 0) {
    groups = next_groups();
  }
  if (!unlocks_.empty() && (unlock_flights_ == 0 || !groups.empty())) send_unlocks();
  if (!groups.empty()) send_tries(std::move(groups));
  watch();
}

// --- Answers ---------------------------------------------------------------------------------------------------------

void HolderSession::deliver() {
  if (std::exchange(delivering_, true)) return;
  const Lifetime::Watch life = lifetime_.watch();
  while (!answers_.empty()) {
    const Answer answer = std::move(answers_.front());
    answers_.pop_front();
    const auto found = tries_.extract(answer.id);
    if (found.empty()) {  // withdrawn since
      if (answer.kind != Answer::Kind::granted) continue;
      if (auto key = kept_.take(answer.grant.owner)) unlock_later({.key = *std::move(key)});
      continue;
    }
    Asker& asker = *found.mapped().asker;
    switch (answer.kind) {
      case Answer::Kind::granted:
        asker.try_granted(answer.grant);
        break;
      case Answer::Kind::busy:
        asker.try_busy();
        break;
      case Answer::Kind::failed:
        asker.try_failed(answer.remedy, answer.why);
        break;
    }
    if (life.over()) return;
  }
  delivering_ = false;
}

void HolderSession::deliver_soon() {
  if (answers_.empty() || delivering_) return;
  executor_.post(lifetime_.guard([this] { settle(); }));
}

// After anything that may have called a handler.
void HolderSession::settle() {
  const Lifetime::Watch life = lifetime_.watch();
  pump();
  deliver();
  if (life.over()) return;
  pump();
  if (quiet()) when_quiet_();
}

// --- The session -----------------------------------------------------------------------------------------------------

void HolderSession::session_ready() {
  const ServerInfo& server = session_.server();
  refusal_ = unfit_for_locks(server);
  proven_ = false;
  if (!refusal_ && !server.ends_silent_sessions && !std::exchange(warned_, true)) {
    host_.warn({.name = "",
                .reason = {errc::unsupported,
                           server.endpoint + ": the server cannot end idle sessions (idle_session_timeout, PostgreSQL "
                                             "14), so a holder that is stopped keeps its locks until it resumes"}});
  }
  settle();
}

void HolderSession::session_alive(TimePoint sent) {
  auto late = kept_.session_alive(sent);
  for (LockKey& key : late) unlock_later({.key = std::move(key)});
  if (!late.empty()) pump();
}

void HolderSession::session_down(const Failure& why, bool was_ready) {
  kept_.lose_all(why);
  held_.clear();
  refusal_.reset();
  // The server has unlocked them by now, or is about to.
  for (const Unlock& unlock : std::exchange(unlocks_, {})) {
    if (unlock.done) unlock.done({.status = ReleaseOutcome::Status::not_owner});
  }
  // What is asked when a connection has just been lost waits for the next one.
  if (!was_ready) fail_pending(meaning_of(Outcome{.problem = Problem::not_sent, .failure = why}).remedy, why);
  news_.broken(why);
  settle();
}

// Before the server can know: the holders of locks are told first.
void HolderSession::give_up(const Failure& why) {
  kept_.lose_all(why);
  session_.break_off(why);
}

}  // namespace dlock::postgres

#include "backends/postgres/session_locks/advisory_tries.hpp"

#include <algorithm>
#include <string_view>
#include <unordered_map>
#include <utility>

#include <dlock/duration.hpp>

#include "backends/postgres/session_locks/session_dialects.hpp"

namespace dlock::postgres {

using std::chrono::nanoseconds;
using Status = TryOutcome::Status;

namespace {

// A try waits only if another client has locked its token's row, or the table. Then it ends soon, because all other
// locks of the session wait with it. It may wait more than once, and statements in flight wait behind it.
constexpr nanoseconds longest_lock_patience = std::chrono::milliseconds(250);
constexpr int lock_patiences_per_lease = 20;
// Further tries and unlocks wait until the query ends.
constexpr std::size_t most_tries_at_once = 256;
// Every answer confirms the session, and there may be a thousand locks: they are extended in steps of the lease.
constexpr int steps_per_lease = 16;

Purpose purpose_of(nanoseconds lease) {
  return {.word = "locks",
          .session_lease = lease,
          .lock_patience = std::min(longest_lock_patience, lease / lock_patiences_per_lease)};
}

// Each reader needs a token, but the session needs the lock once.
bool go_together(const LockKey& a, const LockKey& b) {
  return a.mode == Mode::exclusive && b.mode == Mode::exclusive && a.space == b.space && a.kind == b.kind;
}

}  // namespace

AdvisoryTries::AdvisoryTries(const Services& services, const Options& options, common::ConnectionObserver& observer,
                             std::function<void()> when_quiet)
    : SessionHolds(services.host, "PostgreSQL"),
      options_(options),
      dialect_(services.dialling.dialect),
      sql_(options),
      observer_(observer),
      response_timeout_(services.dialling.response_timeout),
      most_locks_(most_advisory_locks - std::min<std::size_t>(most_advisory_locks - 1, options_.max_connections)),
      when_quiet_(std::move(when_quiet)),
      session_(services.host.executor(), services.dialling, purpose_of(options_.lease), Upkeep::kept_up, *this) {}

AdvisoryTries::~AdvisoryTries() = default;

std::shared_ptr<SharedTries::Ask> AdvisoryTries::ask(const LockRequest& request, AnswerHandler done) {
  const auto asked = std::make_shared<Try>(request, lock_key(options_, request.name, request.kind, request.mode),
                                           std::move(done), token_row(options_, request.name));
  if (excludes(asked->key)) {
    answer(asked, {.status = Status::busy});
  } else {
    pending_.push_back(asked);
    session_.want(asked->request.wait);
  }
  pump();
  return asked;
}

bool AdvisoryTries::withdraw(Ask& asked) {
  if (!std::exchange(static_cast<Try&>(asked).done, nullptr)) return false;
  return std::erase_if(pending_, [&](const auto& each) { return each.get() == &asked; }) == 0;
}

void AdvisoryTries::ask(Query query) {
  (void)session_.request({.query = std::move(query),
                          .deadline = saturating_add(host_.executor().now(), response_timeout_),
                          .patient = true});
}

// The session has the lock, and not to share it: the server would grant a try a second time.
bool AdvisoryTries::excludes(const LockKey& key) const {
  const auto found = locked_.find(key);
  return found != locked_.end() && (key.mode == Mode::exclusive || found->first.mode == Mode::exclusive);
}

// A task delivers the answers, because ask() calls no handler inside the call.
void AdvisoryTries::pump() {
  send_what_waits();
  if (!answers_.empty()) host_.executor().post(lifetime_.guard([this] { deliver_answers(); }));
  if (quiet()) when_quiet_();
}

void AdvisoryTries::send_what_waits() {
  if (!session_.ready()) return;
  if (refusal_) fail(std::exchange(pending_, {}), *refusal_, Remedy::final);
  std::vector<Batch> batches = tried_ == 0 ? next_batches() : std::vector<Batch>();
  if (unlocked_ == 0 || !batches.empty()) send_unlocks();
  for (Batch& batch : batches) send(std::move(batch));
}

// --- Batches ---------------------------------------------------------------------------------------------------------

// A try that is to go alone does: if another client's lock blocks it, it delays all statements behind it.
std::vector<AdvisoryTries::Batch> AdvisoryTries::next_batches() {
  std::map<LockKey, Group> groups;
  for (const auto& asked : std::exchange(pending_, {})) {
    const LockKey& key = asked->key;
    const auto group = groups.find(key);
    const bool full = !locked_.contains(key) && taken() + groups.size() >= most_locks_;
    const bool one_is_alone = !groups.empty() && (asked->alone || groups.begin()->second.front()->alone);
    if (excludes(key)) {
      answer(asked, {.status = Status::busy});
    } else if (group != groups.end() && group->first.mode == key.mode) {
      group->second.push_back(asked);
    } else if (full && groups.empty()) {
      fail({asked},
           {errc::unavailable, "this client holds " + std::to_string(most_locks_) +
                                   " advisory locks, and the server has room for few: hold fewer at once, or use "
                                   "strategy=table"},
           Remedy::retry_later);
    } else if (full || group != groups.end() || one_is_alone || groups.size() == most_tries_at_once) {
      pending_.push_back(asked);
    } else {
      groups.emplace(key, Group{asked});
    }
  }
  std::vector<Batch> batches;
  for (auto& [key, group] : groups) {
    const auto fits = [&first = key](const Batch& batch) { return go_together(batch.front().front()->key, first); };
    auto batch = std::find_if(batches.begin(), batches.end(), fits);
    if (batch == batches.end()) batch = batches.emplace(batch);
    batch->push_back(std::move(group));
  }
  return batches;
}

// Readers who join are counted already while their statement is in flight.
void AdvisoryTries::send(Batch batch) {
  if (!std::exchange(proving_, true)) prove();
  tried_ += batch.size();
  Command command = command_for(batch);
  const auto had = locked_.find(batch.front().front()->key);
  if (had != locked_.end()) had->second += batch.front().size();
  request(std::move(command), [this, sent = std::move(batch)](const Outcome& outcome, const Results& results) {
    answered(sent, outcome, results);
  });
}

Command AdvisoryTries::command_for(const Batch& batch) const {
  const Try& first = *batch.front().front();
  const AdvisoryStatements& statements = sql_.of(first.key);
  if (first.key.mode == Mode::shared) {
    return {.statement = locked_.contains(first.key) ? &statements.join : &statements.try_lock,
            .params = {first.key.parameter, first.row, first.request.holder, std::to_string(batch.front().size())}};
  }
  if (batch.size() == 1) {
    return {.statement = &statements.try_lock, .params = {first.key.parameter, first.row, holder_text(first.request)}};
  }
  std::vector<std::string_view> keys;
  std::vector<std::string_view> rows;
  std::vector<std::string> holders;
  for (const Group& each : batch) {
    keys.emplace_back(each.front()->key.parameter);
    rows.emplace_back(each.front()->row);
    holders.push_back(holder_text(each.front()->request));
  }
  return {.statement = &statements.try_many,
          .params = {text_array(keys), text_array(rows), text_array({holders.begin(), holders.end()})}};
}

// The request has no deadline: a late answer, too, says which locks the session has.
void AdvisoryTries::request(Command command, postgres::Handler done) {
  (void)session_.request({.commands = {std::move(command)}, .done = std::move(done)}, TimePoint::max());
}

// A server other than PostgreSQL may have functions of that name which lock nothing. The answer comes before
// that of the session's first try, in the same round trip.
void AdvisoryTries::prove() {
  const auto key = std::to_string(static_cast<std::int64_t>(host_.executor().random()));
  const auto judge = [this](const Outcome& outcome, const Results& results) {
    const ServerInfo& server = session_.server();
    if (outcome.problem == Problem::none) {
      const Rows& proof = results.front();
      if (!proof.flag(0, 1)) {  // its functions exist for compatibility, and lock nothing
        refusal_ = Failure{errc::unsupported,
                           server.endpoint +
                               ": the server granted an advisory lock, but pg_locks does not show it, so its advisory "
                               "locks exclude no client; use strategy=table"};
      }
      if (proof.number(0, 0) != server.backend_pid) refusal_ = other_session(server);
    } else if (outcome.problem == Problem::refused && dialect_.meaning_of(outcome).code != errc::access_denied) {
      refusal_ = dialect_.failure_of(outcome);
    } else if (outcome.problem == Problem::refused && !std::exchange(warned_of_proof_, true)) {
      host_.warn({.name = "",
                  .reason = {errc::access_denied,
                             outcome.failure.detail +
                                 "; so it cannot be checked that this server's advisory locks exclude other "
                                 "clients"}});
    }
  };
  (void)session_.request(
      {.query = {.commands = {{.statement = &sql_.of(KeySpace::bigint).proof, .params = {key}}}, .done = judge},
       .aside = true});
}

// --- Answers ---------------------------------------------------------------------------------------------------------

void AdvisoryTries::answered(const Batch& batch, const Outcome& outcome, const Results& results) {
  tried_ -= batch.size();
  const Remedy remedy = dialect_.meaning_of(outcome).remedy;
  if (outcome.problem == Problem::none) {
    take_rows(batch, outcome.sent, results.front());
  } else if (outcome.problem == Problem::refused) {
    refused(batch, outcome);
    if (remedy == Remedy::reconnect) return give_up({errc::unavailable, outcome.failure.detail});
  } else {  // a lock that it may have got ends with the connection
    for (const Group& group : batch) fail(group, outcome.failure, remedy);
  }
  if (refusal_ && tried_ == 0 && unlocks_.empty()) return give_up(*refusal_);
  if (!session_.ready()) return pump();  // session_down() follows
  send_what_waits();
  deliver_answers();
}

// A row for each that was granted: of several, with the name in front of token and process.
void AdvisoryTries::take_rows(const Batch& batch, TimePoint sent, const Rows& rows) {
  const std::size_t column = batch.size() == 1 ? 0 : 1;
  std::unordered_map<std::string, std::size_t> places;
  for (std::size_t row = 0; row < rows.size(); ++row) {
    places.emplace(column == 0 ? batch.front().front()->row : rows.text(row, 0), row);
  }
  for (const Group& group : batch) {
    const LockKey& key = group.front()->key;
    const auto place = places.find(group.front()->row);
    if (place == places.end()) {
      leave(key, group.size());
      for (const auto& each : group) answer(each, {.status = Status::busy});
      continue;
    }
    const auto token = rows.number(place->second, column);
    const auto pid = rows.number(place->second, column + 1);
    if (!token || *token <= 0 || pid != session_.server().backend_pid) refusal_ = other_session(session_.server());
    if (refusal_) {
      // Another session may have got the lock; with luck, the unlock reaches the same one.
      locked_.erase(key);
      unlocks_.push_back({.key = key});
      fail(group, *refusal_, Remedy::final);
    } else {
      locked_.emplace(key, key.mode == Mode::shared ? group.size() : 1);
      granted(group, static_cast<std::uint64_t>(*token), sent);
    }
  }
}

// Readers get the tokens up to the one in the answer. Otherwise the first try gets the lock; if its caller is gone, the
// others are sent again behind its unlock.
void AdvisoryTries::granted(const Group& group, std::uint64_t token, TimePoint sent) {
  const bool shared = group.front()->key.mode == Mode::shared;
  if (shared) token -= group.size() - 1;
  for (const auto& asked : group) {
    const LockRequest& request = asked->request;
    if (!shared && asked != group.front()) {
      answer(asked, {.status = Status::busy});
    } else if (asked->done) {
      Grant grant{.name = request.name,
                  .owner = request.owner,
                  .token = FencingToken(token),
                  .valid_until = lease_valid_until(sent, options_.lease),
                  .lease = request.lease,
                  .kind = request.kind,
                  .mode = request.mode};
      add(grant, asked->key);
      answer(asked, {.status = Status::granted, .grant = std::move(grant)});
    } else {
      leave(asked->key, 1);
      if (!shared) return ask_again({group.begin() + 1, group.end()});
    }
    ++token;
  }
}

// A refusal rolls back the rows but not the locks: an error may come after the lock, and in the moment of the grant.
void AdvisoryTries::refused(const Batch& batch, const Outcome& outcome) {
  Remedy remedy = dialect_.meaning_of(outcome).remedy;
  Failure why = dialect_.failure_of(outcome);
  // Another client has locked the token's row, or the table. That says nothing about the lock.
  if (remedy == Remedy::busy) why.code = errc::unavailable;
  const bool of_session = remedy == Remedy::reconnect;
  if (of_session) remedy = Remedy::retry;  // over the next connection
  const bool one_is_at_fault = !of_session && remedy != Remedy::set_up && batch.size() > 1;
  for (const Group& group : batch) {
    const LockKey& key = group.front()->key;
    locked_.emplace(key, group.size());
    leave(key, group.size());
    for (const auto& each : group) each->alone = one_is_at_fault;
    one_is_at_fault ? ask_again(group) : fail(group, why, remedy);
  }
}

void AdvisoryTries::ask_again(const Group& group) {
  std::copy_if(group.begin(), group.end(), std::back_inserter(pending_), [](const auto& each) { return each->done; });
}

void AdvisoryTries::fail(const Group& group, const Failure& why, Remedy remedy) {
  for (const auto& each : group) answer(each, {.status = Status::failed, .failure = why}, remedy);
}

void AdvisoryTries::answer(const std::shared_ptr<Try>& asked, TryOutcome outcome, Remedy remedy) {
  answers_.push_back({asked, std::move(outcome), remedy});
}

// A handler may withdraw the next tries; their grants are given back then. A grant may be lost before its turn comes.
void AdvisoryTries::deliver_answers() {
  const Lifetime::Watch life = lifetime_.watch();
  while (!answers_.empty()) {
    auto [asked, outcome, remedy] = std::move(answers_.front());
    answers_.pop_front();
    const auto done = std::exchange(asked->done, nullptr);
    if (outcome.status == Status::granted && !done) {
      if (const auto key = take(outcome.grant.owner)) leave(*key, 1);
    } else if (outcome.status == Status::granted && !contains(outcome.grant.owner)) {
      outcome = {.status = Status::failed,
                 .failure = {errc::unavailable, "the session ended in the moment of the grant"}};
      remedy = Remedy::retry;
    }
    if (done) done(std::move(outcome), remedy);
    if (life.over()) return;
  }
  pump();
}

// --- Unlocks ---------------------------------------------------------------------------------------------------------

bool AdvisoryTries::release(const OwnerId& owner, ReleaseHandler done) {
  const auto key = take(owner);
  if (!key) return false;
  leave(*key, 1, std::move(done));
  pump();
  return true;
}

// Removes that many readers; the last one unlocks. If the lock was lost with the session, there is nothing to unlock.
void AdvisoryTries::leave(const LockKey& key, std::size_t readers, ReleaseHandler done) {
  using Released = ReleaseOutcome::Status;
  const auto found = locked_.find(key);
  const bool had = found != locked_.end();
  if (had) found->second -= readers;
  if (had && found->second == 0) {
    unlocks_.push_back({.key = found->first, .done = std::move(done)});
    locked_.erase(found);
  } else if (done) {
    done({.status = had ? Released::released : Released::not_owner});
  }
}

// The holder lost the lock, and the session still has it.
void AdvisoryTries::remove(const OwnerId& /*owner*/, LockKey key) {
  if (ending_) return;
  leave(key, 1);
  pump();
}

void AdvisoryTries::send_unlocks() {
  std::map<std::pair<KeySpace, Mode>, std::vector<Unlock>> together;
  for (Unlock& unlock : std::exchange(unlocks_, {})) {
    together[std::pair(unlock.key.space, unlock.key.mode)].push_back(std::move(unlock));
  }
  for (auto& [which, unlocks] : together) {
    // To unlock is the same for all kinds.
    const AdvisoryStatements& statements = sql_.of(which.first, LockKind::lock, which.second);
    Command command{.statement = &statements.unlock, .params = {unlocks.front().key.parameter}};
    if (unlocks.size() > 1) {
      std::vector<std::string_view> keys;
      for (const Unlock& unlock : unlocks) keys.emplace_back(unlock.key.parameter);
      command = {.statement = &statements.unlock_many, .params = {text_array(keys)}};
    }
    unlocked_ += unlocks.size();
    request(std::move(command), [this, sent = std::move(unlocks)](const Outcome& outcome, const Results& results) {
      unlocked(sent, outcome, results);
    });
  }
}

void AdvisoryTries::unlocked(const std::vector<Unlock>& unlocks, const Outcome& outcome, const Results& results) {
  using Released = ReleaseOutcome::Status;
  unlocked_ -= unlocks.size();
  const bool in_doubt = (outcome.problem == Problem::unknown_outcome || outcome.problem == Problem::refused) &&
                        !is_end_of_session(outcome);
  const Lifetime::Watch life = lifetime_.watch();
  pump();  // before the program goes on
  for (std::size_t i = 0; i < unlocks.size(); ++i) {
    if (!unlocks[i].done) continue;
    const bool had = outcome.problem == Problem::none && results.front().flag(i, 0);
    ReleaseOutcome released{.status = had ? Released::released : Released::not_owner};
    if (in_doubt) released = {.status = Released::failed, .failure = dialect_.failure_of(outcome)};
    unlocks[i].done(std::move(released));
    if (life.over()) return;
  }
  if (outcome.problem == Problem::refused) {
    // What the session still has is unknown; without it, nothing.
    give_up({errc::unavailable, "an unlock was refused: " + outcome.failure.detail});
  } else if (outcome.problem == Problem::none && unlocked_ == 0 && refusal_) {
    give_up(*refusal_);
  }
}

// --- The session -----------------------------------------------------------------------------------------------------

void AdvisoryTries::session_ready() {
  const ServerInfo& server = session_.server();
  refusal_ = dialect_.unfit_for_locks(server);
  proving_ = ending_ = false;
  if (!refusal_ && !server.ends_silent_sessions && !std::exchange(warned_, true)) {
    host_.warn({.name = "",
                .reason = {errc::unsupported,
                           server.endpoint + ": the server cannot end idle sessions (idle_session_timeout, PostgreSQL "
                                             "14), so a holder that is stopped keeps its locks until it resumes"}});
  }
  pump();
}

void AdvisoryTries::session_alive(TimePoint sent) {
  SessionHolds::session_alive(lease_valid_until(sent, options_.lease), options_.lease / steps_per_lease);
}

// The session's end frees its locks: no unlock is sent before the holders are notified.
void AdvisoryTries::session_ending(const Failure& why) {
  ending_ = true;
  session_lost(why);
}

void AdvisoryTries::session_down(const Failure& why, bool was_ready) {
  const Lifetime::Watch life = lifetime_.watch();
  session_ending(why);
  if (life.over()) return;
  locked_.clear();
  refusal_.reset();
  // The server has unlocked them by now, or is about to.
  for (const Unlock& unlock : std::exchange(unlocks_, {})) {
    if (unlock.done) unlock.done({.status = ReleaseOutcome::Status::not_owner});
    if (life.over()) return;
  }
  // What is asked when a connection has just been lost waits for the next one.
  if (!was_ready) {
    fail(std::exchange(pending_, {}), why,
         dialect_.meaning_of(Outcome{.problem = Problem::not_sent, .failure = why}).remedy);
  }
  observer_.broken(why);
  pump();
}

// Holders are notified before the connection is closed.
void AdvisoryTries::give_up(Failure why) {
  const Lifetime::Watch life = lifetime_.watch();
  session_ending(why);
  if (!life.over()) session_.break_off(why);
}

}  // namespace dlock::postgres

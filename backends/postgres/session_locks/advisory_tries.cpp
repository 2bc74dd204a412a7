#include "backends/postgres/session_locks/advisory_tries.hpp"

#include <algorithm>
#include <string_view>
#include <utility>

#include <dlock/duration.hpp>

#include "backends/postgres/sessions/session_fitness.hpp"

namespace dlock::postgres {

using std::chrono::nanoseconds;
using Status = TryAnswer::Status;

namespace {

// A try waits only if another client has locked its token's row, or the table. Then it ends soon, because all other
// locks of the session wait with it. It may wait more than once, and is followed by what is under way already.
constexpr nanoseconds longest_lock_patience = std::chrono::milliseconds(250);
constexpr int lock_patiences_per_lease = 20;
// The others wait until a query ends, and so do those that want to give a lock back.
constexpr std::size_t most_tries_at_once = 256;
// Every answer confirms the session, and there may be a thousand locks: they are extended in steps of the lease.
constexpr int steps_per_lease = 16;

Purpose purpose_of(nanoseconds lease) {
  return {.word = "locks",
          .session_lease = lease,
          .lock_patience = std::min(longest_lock_patience, lease / lock_patiences_per_lease)};
}

}  // namespace

AdvisoryTries::AdvisoryTries(BackendHost& host, const Options& options, const Dialling& dialling,
                             const AdvisorySql& sql, std::size_t most_locks, std::function<void()> when_quiet)
    : SessionHolds(host, "PostgreSQL"),
      options_(options),
      sql_(sql),
      response_timeout_(dialling.response_timeout),
      most_locks_(most_locks),
      when_quiet_(std::move(when_quiet)),
      news_(host, true),
      observer_(news_),
      session_(host.executor(), dialling, purpose_of(options.lease), Upkeep::kept_up, *this) {}

AdvisoryTries::~AdvisoryTries() = default;

AdvisoryTries::Id AdvisoryTries::ask(const LockRequest& request, const LockKey& key, Handler done) {
  const Id id = ++last_try_;
  tries_.emplace(id, Try{request, key, std::move(done)});
  if (excludes(key)) {
    answers_.emplace_back(id, TryAnswer{.status = Status::busy});
  } else {
    pending_.insert(id);
    session_.want(request.wait);
    pump();
  }
  settle_soon();
  return id;
}

bool AdvisoryTries::withdraw(Id id) {
  return tries_.erase(id) > 0 && pending_.erase(id) == 0;
}

void AdvisoryTries::overdue() {
  if (!empty() || flights_.empty() || !session_.ready()) return;
  give_up({errc::unavailable, session_.server().endpoint + ": no answer in time"});
}

void AdvisoryTries::ask(Query query) {
  (void)session_.request({.query = std::move(query),
                          .deadline = saturating_add(host_.executor().now(), response_timeout_),
                          .patient = true});
}

// It is held here, and not to be shared: tries for it are useless, and would be granted a second time.
bool AdvisoryTries::excludes(const LockKey& key) const {
  const auto found = held_.find(key);
  if (found == held_.end()) return false;
  return key.mode == Mode::exclusive || found->first.mode == Mode::exclusive;
}

// What can go out now, goes.
void AdvisoryTries::pump() {
  if (!session_.ready()) return;
  std::vector<Group> groups;
  if (refusal_) {
    fail_pending(Remedy::final, *refusal_);
  } else if (tried_ == 0) {
    groups = next_groups();
  }
  if (!unlocks_.empty() && (unlocked_ == 0 || !groups.empty())) send_unlocks();
  if (!groups.empty()) send_tries(std::move(groups));
}

// --- Tries -----------------------------------------------------------------------------------------------------------

std::vector<AdvisoryTries::Group> AdvisoryTries::next_groups() {
  const std::size_t room = most_locks_ - std::min(most_locks_, taken());
  std::vector<Group> groups;
  std::map<LockKey, std::size_t> places;
  for (auto at = pending_.begin(); at != pending_.end();) {
    const Id id = *at;
    const Try& wanted = tries_.at(id);
    const auto place = places.find(wanted.key);
    // One at a time: a try that another client's lock blocks delays all that was sent behind it.
    const bool later = !groups.empty() && (wanted.alone || groups.front().alone);
    const bool joins = held_.contains(wanted.key);
    if (excludes(wanted.key)) {
      answers_.emplace_back(id, TryAnswer{.status = Status::busy});
    } else if (place != places.end() && groups[place->second].key.mode == wanted.key.mode) {
      groups[place->second].tries.push_back(id);
    } else if (room == 0 && !joins) {
      answers_.emplace_back(
          id, TryAnswer{.remedy = Remedy::retry_later,
                        .why = {errc::unavailable, "this client holds " + std::to_string(most_locks_) +
                                                       " advisory locks, and the server has room for few: hold fewer "
                                                       "at once, or use strategy=table"}});
    } else if (!later && place == places.end() &&
               groups.size() < std::min(std::max<std::size_t>(room, 1), most_tries_at_once)) {
      places.emplace(wanted.key, groups.size());
      groups.push_back({.key = wanted.key,
                        .row = token_row(options_, wanted.request.name),
                        .tries = {id},
                        .alone = wanted.alone,
                        .joins = joins});
    } else {
      ++at;
      continue;
    }
    at = pending_.erase(at);
  }
  return groups;
}

// A query of its own for each space of keys and kind of locks, and for each lock that is shared: of those who share
// it, each needs a token, but the session needs the lock once.
void AdvisoryTries::send_tries(std::vector<Group> groups) {
  std::map<std::pair<KeySpace, LockKind>, std::vector<Group>> together;
  for (Group& group : groups) {
    if (group.key.mode == Mode::shared) {
      if (group.joins) held_.at(group.key) += group.tries.size();
      std::vector<Group> alone{std::move(group)};
      Command command = command_for(alone);
      send_flight({.groups = std::move(alone)}, std::move(command));
      continue;
    }
    const std::pair which(group.key.space, group.key.kind);
    together[which].push_back(std::move(group));
  }
  for (auto& [which, some] : together) {
    Command command = command_for(some);
    send_flight({.groups = std::move(some)}, std::move(command));
  }
}

Command AdvisoryTries::command_for(const std::vector<Group>& groups) const {
  const Group& first = groups.front();
  const AdvisoryStatements& statements = sql_.of(first.key);
  if (first.key.mode == Mode::shared) {
    return {.statement = first.joins ? &statements.join : &statements.try_lock,
            .params = {first.key.parameter, first.row, tries_.at(first.tries.front()).request.holder,
                       std::to_string(first.tries.size())}};
  }
  if (groups.size() == 1) {
    return {.statement = &statements.try_lock,
            .params = {first.key.parameter, first.row, holder_text(tries_.at(first.tries.front()).request)}};
  }
  std::vector<std::string_view> keys;
  std::vector<std::string_view> rows;
  std::vector<std::string> holders;
  for (const Group& group : groups) {
    keys.emplace_back(group.key.parameter);
    rows.emplace_back(group.row);
    holders.push_back(holder_text(tries_.at(group.tries.front()).request));
  }
  return {.statement = &statements.try_many,
          .params = {text_array(keys), text_array(rows), text_array({holders.begin(), holders.end()})}};
}

void AdvisoryTries::send_flight(Flight flight, Command command) {
  const FlightId id = ++last_flight_;
  tried_ += flight.groups.size();
  flights_.emplace(id, std::move(flight));
  const bool with_proof = !proven_;
  // Without a deadline: whatever the answer, and however late, it has to be known what the session has.
  (void)session_.request({.commands = {std::move(command)},
                          .done =
                              [this, id, with_proof](const Outcome& outcome, const Results& results) {
                                if (!with_proof) return tries_answered(id, outcome, results);
                                Flight& tried = flights_.at(id);
                                tried.outcome = outcome;
                                tried.results = results;
                              }},
                         TimePoint::max());
  if (!with_proof) return;
  // In the same round trip, and a query of its own, so that an error of it undoes nothing.
  (void)session_.request(
      {.commands = {{.statement = &sql_.of(KeySpace::bigint).proof}},
       .done = [this, id](const Outcome& outcome, const Results& results) { prove(id, outcome, results); }},
      TimePoint::max());
}

// A server that is none of PostgreSQL's may have functions of that name which lock nothing.
void AdvisoryTries::prove(FlightId id, const Outcome& outcome, const Results& results) {
  const Outcome tried = flights_.at(id).outcome;
  const Results rows = flights_.at(id).results;
  const bool granted_any = tried.problem == Problem::none && !rows.empty() && !rows.front().empty();
  if (!granted_any || proven_) return tries_answered(id, tried, rows);
  const bool forbidden = outcome.problem == Problem::refused && meaning_of(outcome).code == errc::access_denied;
  if (outcome.problem != Problem::none && !forbidden) return tries_answered(id, outcome, {});
  if (forbidden && !std::exchange(warned_of_proof_, true)) {
    host_.warn({.name = "",
                .reason = {errc::access_denied, outcome.failure.detail +
                                                    "; so it cannot be checked that this server's advisory locks "
                                                    "exclude other clients"}});
  }
  const Rows none;
  const Rows& proof = results.empty() ? none : results.front();
  if (!forbidden && proof.number(0, 0) != session_.server().backend_pid) {
    refusal_ = other_session(session_.server());
  } else if (!forbidden && !proof.flag(0, 1)) {
    refusal_ = locks_nothing(session_.server());
  }
  proven_ = !refusal_;
  tries_answered(id, tried, rows);
}

void AdvisoryTries::tries_answered(FlightId id, const Outcome& outcome, const Results& results) {
  const Flight flight = std::move(flights_.extract(id).mapped());
  tried_ -= flight.groups.size();
  const Meaning meaning = meaning_of(outcome);
  switch (outcome.problem) {
    case Problem::none:
      take_rows(flight, outcome.sent, results);
      break;
    case Problem::refused:
      refused(flight, outcome);
      break;
    case Problem::not_sent:
    case Problem::unknown_outcome:  // what it may have got goes with the connection
      for (const Group& group : flight.groups) {
        if (group.joins) leave(group.key, group.tries.size());
        give_answers(group.tries, {.remedy = meaning.remedy, .why = outcome.failure});
      }
      break;
  }
  if (outcome.problem == Problem::refused && meaning.remedy == Remedy::reconnect) {
    return give_up({errc::unavailable, outcome.failure.detail});
  }
  settle();
}

// A row for each that was granted: of several, with the name in front of token and process.
void AdvisoryTries::take_rows(const Flight& flight, TimePoint sent, const Results& results) {
  const Rows none;
  const Rows& rows = results.empty() ? none : results.front();
  if (flight.groups.size() == 1) return take_row(flight.groups.front(), rows, 0, 0, sent);
  std::unordered_map<std::string, std::size_t> places;
  for (std::size_t row = 0; row < rows.size(); ++row) places.emplace(rows.text(row, 0), row);
  for (const Group& group : flight.groups) {
    const auto place = places.find(group.row);
    take_row(group, rows, place == places.end() ? rows.size() : place->second, 1, sent);
  }
}

// Those who share a lock have the tokens up to the one that was answered. Of the others only the first one was tried
// for.
void AdvisoryTries::take_row(const Group& group, const Rows& rows, std::size_t row, std::size_t column,
                             TimePoint sent) {
  if (row >= rows.size()) {
    if (group.joins) leave(group.key, group.tries.size());
    return give_answers(group.tries, {.status = Status::busy});
  }
  const auto token = rows.number(row, column);
  const bool ours = token && *token > 0 && rows.number(row, column + 1) == session_.server().backend_pid;
  if (!ours || refusal_) {
    // Whichever session got the lock: perhaps the unlock comes to the same one.
    (void)held_.erase(group.key);
    unlocks_.push_back({.key = group.key});
    if (!ours) refusal_ = other_session(session_.server());
    return give_answers(group.tries, {.remedy = Remedy::final, .why = *refusal_});
  }
  const bool shared = group.key.mode == Mode::shared;
  const std::size_t granted_to = shared ? group.tries.size() : 1;
  if (!group.joins) held_.emplace(group.key, granted_to);
  std::uint64_t next = static_cast<std::uint64_t>(*token) - granted_to;
  for (std::size_t i = 0; i < granted_to; ++i) {
    ++next;
    const auto wanted = tries_.find(group.tries[i]);
    if (wanted != tries_.end()) {
      granted(group.tries[i], wanted->second, FencingToken(next), sent);
      continue;
    }
    leave(group.key, 1);  // no caller waits for it any more
    if (!shared) return ask_again({group.tries.begin() + 1, group.tries.end()}, false);
  }
  if (!shared) give_answers({group.tries.begin() + 1, group.tries.end()}, {.status = Status::busy});
}

void AdvisoryTries::granted(Id id, const Try& wanted, FencingToken token, TimePoint sent) {
  const LockRequest& request = wanted.request;
  Grant grant{.name = request.name,
              .owner = request.owner,
              .token = token,
              .valid_until = lease_valid_until(sent, options_.lease),
              .lease = request.lease,
              .kind = request.kind,
              .mode = request.mode};
  add(grant, wanted.key);
  answers_.emplace_back(id, TryAnswer{.status = Status::granted, .grant = std::move(grant)});
}

// A refusal rolls back the rows but not the locks: an error may come after the lock, and in the moment of the grant.
void AdvisoryTries::refused(const Flight& flight, const Outcome& outcome) {
  for (const Group& group : flight.groups) {
    if (group.joins) {
      leave(group.key, group.tries.size());
    } else {
      unlock_later({.key = group.key});
    }
  }
  TryAnswer answer{.remedy = meaning_of(outcome).remedy, .why = failure_of(outcome, options_.schema)};
  // Another client has locked the token's row, or the table. That says nothing about the lock.
  if (answer.remedy == Remedy::busy) answer.why.code = errc::unavailable;
  const bool reconnects = answer.remedy == Remedy::reconnect;
  if (reconnects) answer.remedy = Remedy::retry;  // over the next connection
  const bool one_may_be_the_reason = !reconnects && answer.remedy != Remedy::set_up && flight.groups.size() > 1;
  for (const Group& group : flight.groups) {
    if (!one_may_be_the_reason) {
      give_answers(group.tries, answer);
      continue;
    }
    ask_again(group.tries, true);
  }
}

void AdvisoryTries::ask_again(const std::vector<Id>& tries, bool alone) {
  for (const Id id : tries) {
    const auto found = tries_.find(id);
    if (found == tries_.end()) continue;
    found->second.alone = alone;
    pending_.insert(id);
  }
}

// --- Answers ---------------------------------------------------------------------------------------------------------

void AdvisoryTries::give_answers(const std::vector<Id>& tries, const TryAnswer& answer) {
  for (const Id id : tries) answers_.emplace_back(id, answer);
}

void AdvisoryTries::fail_pending(Remedy remedy, const Failure& why) {
  for (const Id id : std::exchange(pending_, {})) answers_.emplace_back(id, TryAnswer{.remedy = remedy, .why = why});
}

void AdvisoryTries::deliver() {
  const Lifetime::Watch life = lifetime_.watch();
  while (!answers_.empty()) {
    const auto [id, answer] = std::move(answers_.front());
    answers_.pop_front();
    const auto found = tries_.extract(id);
    if (found.empty()) {  // withdrawn since
      if (answer.status != Status::granted) continue;
      if (auto key = take(answer.grant.owner)) unlock_later({.key = *std::move(key)});
      continue;
    }
    found.mapped().done(answer);
    if (life.over()) return;
  }
}

void AdvisoryTries::settle_soon() {
  if (answers_.empty() || std::exchange(settling_, true)) return;
  host_.executor().post(lifetime_.guard([this] {
    settling_ = false;
    settle();
  }));
}

// After anything that may have called a handler.
void AdvisoryTries::settle() {
  const Lifetime::Watch life = lifetime_.watch();
  pump();
  deliver();
  if (life.over()) return;
  pump();
  if (quiet()) when_quiet_();
}

// --- Unlocks ---------------------------------------------------------------------------------------------------------

bool AdvisoryTries::release(const OwnerId& owner, ReleaseHandler done) {
  auto key = take(owner);
  if (!key) return false;
  unlock_later({.key = *std::move(key), .done = std::move(done)});
  pump();
  settle_soon();
  return true;
}

// The last of those who share it unlocks it.
void AdvisoryTries::unlock_later(Unlock unlock) {
  const auto found = held_.find(unlock.key);
  if (found != held_.end() && found->second > 1) {
    --found->second;
    if (unlock.done) unlock.done({.status = ReleaseOutcome::Status::released});
    return;
  }
  if (found != held_.end()) held_.erase(found);
  unlocks_.push_back(std::move(unlock));
}

// Of those who share it, as many do no longer. Nothing where it went with the session.
void AdvisoryTries::leave(const LockKey& key, std::size_t readers) {
  for (; readers > 0 && held_.contains(key); --readers) unlock_later({.key = key});
}

// Lost, and the session still has it.
void AdvisoryTries::remove(const OwnerId& /*owner*/, LockKey key) {
  if (ending_) return;
  unlock_later({.key = std::move(key)});
  pump();
}

void AdvisoryTries::send_unlocks() {
  std::map<std::pair<KeySpace, Mode>, std::vector<Unlock>> together;
  for (Unlock& unlock : std::exchange(unlocks_, {})) {
    const std::pair which(unlock.key.space, unlock.key.mode);
    together[which].push_back(std::move(unlock));
  }
  for (auto& [which, unlocks] : together) {
    std::vector<std::string_view> keys;
    keys.reserve(unlocks.size());
    for (const Unlock& unlock : unlocks) keys.emplace_back(unlock.key.parameter);
    // To unlock is the same for all kinds.
    const AdvisoryStatements& statements = sql_.of(which.first, LockKind::lock, which.second);
    Command command{.statement = &statements.unlock_many, .params = {text_array(keys)}};
    if (unlocks.size() == 1) command = {.statement = &statements.unlock, .params = {unlocks.front().key.parameter}};
    const FlightId id = ++last_flight_;
    unlocked_ += unlocks.size();
    flights_.emplace(id, Flight{.unlocks = std::move(unlocks)});
    (void)session_.request({.commands = {std::move(command)},
                            .done = [this, id](const Outcome& outcome,
                                               const Results& results) { unlocks_answered(id, outcome, results); }},
                           TimePoint::max());
  }
}

void AdvisoryTries::unlocks_answered(FlightId id, const Outcome& outcome, const Results& results) {
  using Released = ReleaseOutcome::Status;
  const Flight flight = std::move(flights_.extract(id).mapped());
  unlocked_ -= flight.unlocks.size();
  std::set<std::string> freed;  // the keys that the session had
  const bool one = flight.unlocks.size() == 1;
  for (std::size_t row = 0; !results.empty() && row < results.front().size(); ++row) {
    if (!results.front().flag(row, one ? 0 : 1)) continue;
    freed.insert(one ? flight.unlocks.front().key.parameter : results.front().text(row, 0));
  }
  const bool in_doubt = (outcome.problem == Problem::unknown_outcome || outcome.problem == Problem::refused) &&
                        !is_end_of_session(outcome);
  const Lifetime::Watch life = lifetime_.watch();
  pump();  // before the program goes on
  for (const Unlock& unlock : flight.unlocks) {
    if (!unlock.done) continue;
    ReleaseOutcome released{.status = freed.contains(unlock.key.parameter) ? Released::released : Released::not_owner};
    if (in_doubt) released = {.status = Released::failed, .failure = failure_of(outcome, options_.schema)};
    unlock.done(std::move(released));
    if (life.over()) return;
  }
  if (outcome.problem == Problem::refused) {
    // What the session still has is unknown; without it, nothing.
    give_up({errc::unavailable, "an unlock was refused: " + outcome.failure.detail});
  } else if (outcome.problem == Problem::none && unlocked_ == 0 && refusal_) {
    give_up(Failure(*refusal_));
  }
  if (!life.over()) settle();
}

// --- The session -----------------------------------------------------------------------------------------------------

void AdvisoryTries::session_ready() {
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

void AdvisoryTries::session_alive(TimePoint sent) {
  SessionHolds::session_alive(lease_valid_until(sent, options_.lease), options_.lease / steps_per_lease);
}

// The locks go with the session: no unlock is sent before the holders know.
void AdvisoryTries::session_ending(const Failure& why) {
  const Lifetime::Watch life = lifetime_.watch();
  ending_ = true;
  session_lost(why);
  if (!life.over()) ending_ = false;
}

void AdvisoryTries::session_down(const Failure& why, bool was_ready) {
  session_ending(why);
  held_.clear();
  refusal_.reset();
  // The server has unlocked them by now, or is about to.
  for (const Unlock& unlock : std::exchange(unlocks_, {})) {
    if (unlock.done) unlock.done({.status = ReleaseOutcome::Status::not_owner});
  }
  // What is asked when a connection has just been lost waits for the next one.
  if (!was_ready) fail_pending(meaning_of(Outcome{.problem = Problem::not_sent, .failure = why}).remedy, why);
  observer_.broken(why);
  settle();
}

// Before the server can know: the holders of locks are told first.
void AdvisoryTries::give_up(const Failure& why) {
  const Lifetime::Watch life = lifetime_.watch();
  session_ending(why);
  if (!life.over()) session_.break_off(why);
}

}  // namespace dlock::postgres

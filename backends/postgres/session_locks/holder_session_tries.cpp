// Of HolderSession: what is asked about locks, and what came back.
#include <algorithm>
#include <string_view>
#include <utility>

#include "backends/postgres/session_locks/holder_session.hpp"
#include "backends/postgres/sessions/session_fitness.hpp"

namespace dlock::postgres {

namespace {

// The others wait until a query ends, and so do those that want to give a lock back.
constexpr std::size_t most_tries_at_once = 256;

}  // namespace

std::vector<HolderSession::Group> HolderSession::next_groups() {
  const std::size_t room = limit_.most_locks - std::min(limit_.most_locks, limit_.taken());
  std::vector<Group> groups;
  std::map<LockKey, std::size_t> places;
  for (auto at = pending_.begin(); at != pending_.end();) {
    const TryId id = *at;
    const Try& wanted = tries_.at(id);
    const auto place = places.find(wanted.key);
    // One at a time: a try that another client's lock blocks delays all that was sent behind it.
    const bool later = !groups.empty() && (wanted.alone || groups.front().alone);
    const bool joins = held_.contains(wanted.key);
    if (excludes(wanted.key)) {
      answers_.push_back({.kind = Answer::Kind::busy, .id = id});
    } else if (place != places.end() && groups[place->second].key.mode == wanted.key.mode) {
      groups[place->second].followers.push_back(id);
    } else if (room == 0 && !joins) {
      answers_.push_back(
          {.kind = Answer::Kind::failed,
           .id = id,
           .remedy = Remedy::retry_later,
           .why = {errc::unavailable,
                   "this client holds " + std::to_string(limit_.most_locks) +
                       " advisory locks, and the server has room for few: hold fewer at once, or use strategy=table"}});
    } else if (!later && place == places.end() &&
               groups.size() < std::min(std::max<std::size_t>(room, 1), most_tries_at_once)) {
      places.emplace(wanted.key, groups.size());
      groups.push_back({.key = wanted.key,
                        .row = token_row(options_, wanted.request.name),
                        .leader = id,
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

void HolderSession::send_tries(std::vector<Group> groups) {
  std::map<std::pair<KeySpace, LockKind>, std::vector<Group>> together;
  for (Group& group : groups) {
    if (group.key.mode == Mode::shared) {
      send_shared(std::move(group));
      continue;
    }
    const std::pair which(group.key.space, group.key.kind);
    together[which].push_back(std::move(group));
  }
  for (auto& [which, some] : together) send_tries(sql_.of(which.first, which.second), std::move(some));
}

void HolderSession::send_tries(const AdvisoryStatements& statements, std::vector<Group> groups) {
  Command command;
  if (groups.size() == 1) {
    const Try& wanted = tries_.at(groups.front().leader);
    command = {.statement = &statements.try_lock,
               .params = {wanted.key.parameter, groups.front().row, holder_text(wanted.request)}};
  } else {
    std::vector<std::string_view> keys;
    std::vector<std::string_view> rows;
    std::vector<std::string> holders;
    for (const Group& group : groups) {
      const Try& wanted = tries_.at(group.leader);
      keys.emplace_back(wanted.key.parameter);
      rows.emplace_back(group.row);
      holders.push_back(holder_text(wanted.request));
    }
    command = {.statement = &statements.try_many,
               .params = {text_array(keys), text_array(rows), text_array({holders.begin(), holders.end()})}};
  }
  send_flight({.since = executor_.now(), .groups = std::move(groups)}, std::move(command));
}

// All of a group at once: each that shares it needs a token of its own, but no lock of the session's.
void HolderSession::send_shared(Group group) {
  const AdvisoryStatements& statements = sql_.of(group.key);
  if (group.joins) held_.at(group.key) += group.size();
  Command command{
      .statement = group.joins ? &statements.join : &statements.try_lock,
      .params = {group.key.parameter, group.row, tries_.at(group.leader).request.holder, std::to_string(group.size())}};
  send_flight({.since = executor_.now(), .groups = {std::move(group)}}, std::move(command));
}

void HolderSession::send_flight(Flight flight, Command command) {
  const FlightId id = ++last_flight_;
  tried_ += flight.groups.size();
  flights_.emplace(id, std::move(flight));
  ++try_flights_;
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
void HolderSession::prove(FlightId id, const Outcome& outcome, const Results& results) {
  const Flight& flight = flights_.at(id);
  const Outcome tried = flight.outcome;
  const Results rows = flight.results;
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

void HolderSession::tries_answered(FlightId id, const Outcome& outcome, const Results& results) {
  const Flight flight = std::move(flights_.extract(id).mapped());
  --try_flights_;
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
        if (group.joins) leave(group.key, group.size());
        give_answers(group, {.kind = Answer::Kind::failed, .remedy = meaning.remedy, .why = outcome.failure});
      }
      break;
  }
  if (outcome.problem == Problem::refused && meaning.remedy == Remedy::reconnect) {
    return give_up({errc::unavailable, outcome.failure.detail});
  }
  settle();
}

void HolderSession::take_rows(const Flight& flight, TimePoint sent, const Results& results) {
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

// No such row: busy. Otherwise token and process are in that column and the next one.
void HolderSession::take_row(const Group& group, const Rows& rows, std::size_t row, std::size_t column,
                             TimePoint sent) {
  if (row >= rows.size()) {
    if (group.joins) leave(group.key, group.size());
    return give_answers(group, {.kind = Answer::Kind::busy});
  }
  const auto token = rows.number(row, column);
  const bool ours = token && *token > 0 && rows.number(row, column + 1) == session_.server().backend_pid;
  if (!ours || refusal_) {
    // Whichever session got the lock: perhaps the unlock comes to the same one.
    (void)held_.erase(group.key);
    unlocks_.push_back({.key = group.key});
    if (!ours) refusal_ = other_session(session_.server());
    return give_answers(group, {.kind = Answer::Kind::failed, .remedy = Remedy::final, .why = *refusal_});
  }
  const FencingToken last(static_cast<std::uint64_t>(*token));
  if (group.key.mode == Mode::shared) return take_shared(group, last, sent);
  const auto leader = tries_.find(group.leader);
  if (leader == tries_.end()) {  // no caller waits for it any more
    unlock_later({.key = group.key});
    return ask_again(group, false);
  }
  held_.emplace(group.key, 0);
  granted(leader->second, group.leader, last, sent);
  for (const TryId follower : group.followers) answers_.push_back({.kind = Answer::Kind::busy, .id = follower});
}

// The session has it; those of the group without a waiting caller do not share it.
void HolderSession::take_shared(const Group& group, FencingToken last, TimePoint sent) {
  if (!group.joins) held_.emplace(group.key, group.size());
  std::vector<TryId> ids = group.followers;
  ids.insert(ids.begin(), group.leader);
  std::uint64_t token = last.value() - ids.size();
  std::size_t gone = 0;
  for (const TryId id : ids) {
    ++token;
    const auto found = tries_.find(id);
    if (found == tries_.end()) {
      ++gone;
    } else {
      granted(found->second, id, FencingToken(token), sent);
    }
  }
  if (gone > 0) leave(group.key, gone);
}

void HolderSession::granted(const Try& wanted, TryId id, FencingToken token, TimePoint sent) {
  const LockRequest& request = wanted.request;
  Grant grant{.name = request.name,
              .owner = request.owner,
              .token = token,
              .valid_until = lease_valid_until(sent, options_.lease),
              .lease = request.lease,
              .kind = request.kind,
              .mode = request.mode};
  kept_.add(grant, wanted.key);
  answers_.push_back({.kind = Answer::Kind::granted, .id = id, .grant = std::move(grant)});
}

// A refusal rolls back the rows but not the locks: an error may come after the lock, and in the moment of the grant.
void HolderSession::refused(const Flight& flight, const Outcome& outcome) {
  for (const Group& group : flight.groups) {
    if (group.joins) {
      leave(group.key, group.size());
    } else {
      unlock_later({.key = group.key});
    }
  }
  Answer answer{
      .kind = Answer::Kind::failed, .remedy = meaning_of(outcome).remedy, .why = failure_of(outcome, options_.schema)};
  // Another client has locked the token's row, or the table. That says nothing about the lock.
  if (answer.remedy == Remedy::busy) answer.why.code = errc::unavailable;
  if (answer.remedy == Remedy::reconnect) {
    answer.remedy = Remedy::retry;  // over the next connection
  } else if (answer.remedy != Remedy::set_up && flight.groups.size() > 1) {
    for (const Group& group : flight.groups) ask_again(group, true);
    return;
  }
  for (const Group& group : flight.groups) give_answers(group, answer);
}

void HolderSession::ask_again(const Group& group, bool alone) {
  std::vector<TryId> ids = group.followers;
  ids.push_back(group.leader);
  for (const TryId id : ids) {
    const auto found = tries_.find(id);
    if (found == tries_.end()) continue;
    found->second.alone = alone;
    pending_.insert(id);
  }
}

void HolderSession::give_answers(const Group& group, const Answer& answer) {
  answers_.push_back(answer);
  answers_.back().id = group.leader;
  for (const TryId follower : group.followers) {
    answers_.push_back(answer);
    answers_.back().id = follower;
  }
}

void HolderSession::fail_pending(Remedy remedy, const Failure& why) {
  for (const TryId id : std::exchange(pending_, {})) {
    answers_.push_back({.kind = Answer::Kind::failed, .id = id, .remedy = remedy, .why = why});
  }
}

}  // namespace dlock::postgres

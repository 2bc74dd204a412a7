// Of HolderSession: giving locks back, and what is to be done about a server that does not answer.
#include <algorithm>
#include <string_view>
#include <utility>

#include <dlock/duration.hpp>

#include "backends/postgres/session_locks/holder_session.hpp"
#include "backends/postgres/sql/sqlstate.hpp"

namespace dlock::postgres {

bool HolderSession::release(const OwnerId& owner, ReleaseHandler done) {
  auto key = kept_.take(owner);
  if (!key) return false;
  unlock_later(
      {.key = *std::move(key), .done = std::move(done), .due = saturating_add(executor_.now(), response_timeout_)});
  pump();
  deliver_soon();
  return true;
}

// The last of those who share it unlocks it.
void HolderSession::unlock_later(Unlock unlock) {
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
void HolderSession::leave(const LockKey& key, std::size_t readers) {
  for (; readers > 0 && held_.contains(key); --readers) unlock_later({.key = key});
}

void HolderSession::send_unlocks() {
  std::map<std::pair<KeySpace, Mode>, std::vector<Unlock>> together;
  for (Unlock& unlock : std::exchange(unlocks_, {})) {
    const std::pair which(unlock.key.space, unlock.key.mode);
    together[which].push_back(std::move(unlock));
  }
  for (auto& [which, unlocks] : together) {
    // To unlock is the same for all kinds.
    send_unlocks(sql_.of(which.first, LockKind::lock, which.second), std::move(unlocks));
  }
}

void HolderSession::send_unlocks(const AdvisoryStatements& statements, std::vector<Unlock> unlocks) {
  Command command;
  if (unlocks.size() == 1) {
    command = {.statement = &statements.unlock, .params = {unlocks.front().key.parameter}};
  } else {
    std::vector<std::string_view> keys;
    keys.reserve(unlocks.size());
    for (const Unlock& unlock : unlocks) keys.emplace_back(unlock.key.parameter);
    command = {.statement = &statements.unlock_many, .params = {text_array(keys)}};
  }
  const FlightId id = ++last_flight_;
  unlocked_ += unlocks.size();
  flights_.emplace(id, Flight{.since = executor_.now(), .unlocks = std::move(unlocks)});
  ++unlock_flights_;
  (void)session_.request(
      {.commands = {std::move(command)},
       .done = [this, id](const Outcome& outcome, const Results& results) { unlocks_answered(id, outcome, results); }},
      TimePoint::max());
}

// The keys that the session had.
std::set<std::string> HolderSession::freed_by(const Flight& flight, const Outcome& outcome, const Results& results) {
  std::set<std::string> freed;
  if (outcome.problem != Problem::none || results.empty()) return freed;
  const Rows& rows = results.front();
  if (flight.unlocks.size() == 1) {
    if (rows.flag(0, 0)) freed.insert(flight.unlocks.front().key.parameter);
    return freed;
  }
  for (std::size_t row = 0; row < rows.size(); ++row) {
    if (rows.flag(row, 1)) freed.insert(rows.text(row, 0));
  }
  return freed;
}

void HolderSession::unlocks_answered(FlightId id, const Outcome& outcome, const Results& results) {
  using Status = ReleaseOutcome::Status;
  const Flight flight = std::move(flights_.extract(id).mapped());
  --unlock_flights_;
  unlocked_ -= flight.unlocks.size();
  const std::set<std::string> freed = freed_by(flight, outcome, results);
  const Lifetime::Watch life = lifetime_.watch();
  pump();  // before the program goes on
  for (const Unlock& unlock : flight.unlocks) {
    if (!unlock.done) continue;
    switch (outcome.problem) {
      case Problem::none:
        unlock.done({.status = freed.contains(unlock.key.parameter) ? Status::released : Status::not_owner});
        break;
      case Problem::not_sent:  // the session was gone
        unlock.done({.status = Status::not_owner});
        break;
      case Problem::unknown_outcome:
      case Problem::refused:
        if (is_end_of_session(outcome)) {
          unlock.done({.status = Status::not_owner});
          break;
        }
        unlock.done({.status = Status::failed, .failure = failure_of(outcome, options_.schema)});
        break;
    }
    if (life.over()) return;
  }
  if (outcome.problem == Problem::refused) {
    // What the session still has is unknown; without it, nothing.
    give_up({errc::unavailable, "an unlock was refused: " + outcome.failure.detail});
  } else if (outcome.problem == Problem::none && unlock_flights_ == 0 && refusal_) {
    give_up(Failure(*refusal_));
  }
  if (!life.over()) settle();
}

// --- A server that does not answer -----------------------------------------------------------------------------------

// One timer for all: it is never moved, and looks again when it finds nothing to do.
void HolderSession::watch() {
  if (timer_.armed() || (flights_.empty() && unlocks_.empty())) return;
  look_at_clock_at(saturating_add(executor_.now(), response_timeout_));
}

void HolderSession::look_at_clock_at(TimePoint at) {
  timer_.arm(at, [this] {
    // The session goes first: answers may be there, if it is we who were asleep.
    executor_.post(lifetime_.guard([this] { look_at_clock(); }));
  });
}

void HolderSession::look_at_clock() {
  const TimePoint now = executor_.now();
  const Lifetime::Watch life = lifetime_.watch();
  // They are carried out all the same when the server comes to them, or when the session ends.
  for (const ReleaseHandler& done : take_overdue(now)) {
    done({.status = ReleaseOutcome::Status::failed,
          .failure = {errc::ambiguous, session_.server().endpoint + ": no answer in time"}});
    if (life.over()) return;
  }
  if (!flights_.empty() && now >= saturating_add(flights_.begin()->second.since, response_timeout_)) {
    const Failure why{errc::unavailable, session_.server().endpoint + ": no answer in time"};
    if (kept_.empty()) {
      give_up(why);  // there is nothing to lose, and another connection may do better
    } else {
      tell_delayed(why);
    }
    if (life.over()) return;
  }
  look_again();
}

void HolderSession::tell_delayed(const Failure& why) {
  std::vector<TryId> waiting;
  for (const auto& [id, flight] : flights_) {
    for (const Group& group : flight.groups) {
      waiting.push_back(group.leader);
      waiting.insert(waiting.end(), group.followers.begin(), group.followers.end());
    }
  }
  const Lifetime::Watch life = lifetime_.watch();
  for (const TryId id : waiting) {
    const auto found = tries_.find(id);
    if (found != tries_.end()) found->second.asker->try_delayed(why);
    if (life.over()) return;
  }
}

void HolderSession::look_again() {
  const TimePoint now = executor_.now();
  TimePoint next = TimePoint::max();
  const auto consider = [&](const Unlock& unlock) {
    if (unlock.done) next = std::min(next, unlock.due);
  };
  for (const Unlock& unlock : unlocks_) consider(unlock);
  for (const auto& [id, flight] : flights_) {
    const TimePoint due = saturating_add(flight.since, response_timeout_);
    next = std::min(next, due > now ? due : saturating_add(now, response_timeout_));
    for (const Unlock& unlock : flight.unlocks) consider(unlock);
  }
  if (timer_.armed() || next == TimePoint::max()) return;
  look_at_clock_at(next);
}

std::vector<HolderSession::ReleaseHandler> HolderSession::take_overdue(TimePoint now) {
  std::vector<ReleaseHandler> overdue;
  const auto take = [&](Unlock& unlock) {
    if (unlock.done && now >= unlock.due) overdue.push_back(std::exchange(unlock.done, nullptr));
  };
  for (Unlock& unlock : unlocks_) take(unlock);
  for (auto& [id, flight] : flights_) {
    for (Unlock& unlock : flight.unlocks) take(unlock);
  }
  return overdue;
}

}  // namespace dlock::postgres

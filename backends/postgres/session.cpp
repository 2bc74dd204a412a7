#include "backends/postgres/session.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include <dlock/backend.hpp>
#include <dlock/duration.hpp>

namespace dlock::postgres {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;

namespace {

constexpr nanoseconds longest_silence = std::chrono::seconds(2);
constexpr nanoseconds shortest_silence = milliseconds(50);
constexpr int beats_per_lease = 3;

nanoseconds silence_for(const Dialling& dialling, const Purpose& purpose) {
  nanoseconds silence = std::min(longest_silence, dialling.response_timeout);
  if (purpose.session_lease > nanoseconds(0)) silence = std::min(silence, purpose.session_lease / beats_per_lease);
  return std::max(silence, shortest_silence);
}

}  // namespace

Session::Session(Executor& executor, const Dialling& dialling, Purpose purpose, Upkeep upkeep, User& user)
    : executor_(executor),
      dialling_(dialling),
      user_(user),
      session_lease_(purpose.session_lease),
      silence_(silence_for(dialling, purpose)),
      deadline_timer_(executor),
      beat_timer_(executor),
      link_(executor, dialling, std::move(purpose), upkeep, *this) {}

Session::~Session() = default;

// --- Requests --------------------------------------------------------------------------------------------------------

Session::RequestId Session::request(Request request) {
  const RequestId id = ++last_id_;
  if (link_.ready()) {
    send(id, std::move(request));
    return id;
  }
  if (link_.over()) {
    executor_.post([done = std::move(request.query.done), why = problem()] {
      if (done) done({.problem = Problem::not_sent, .failure = why}, {});
    });
    return id;
  }
  arm(request.deadline);
  const bool patient = request.patient;
  waiting_.emplace(id, std::move(request));
  link_.want(patient);
  return id;
}

void Session::send(RequestId id, Request request) {
  InFlight& entry = in_flight_.emplace_back();
  entry.id = id;
  entry.deadline = request.deadline;
  entry.sent = executor_.now();
  entry.patience = request.blocks ? request.deadline : saturating_add(entry.sent, dialling_.response_timeout);
  entry.done = std::move(request.query.done);
  arm(std::min(entry.deadline, entry.patience));
  request.query.done = [this, id](const Outcome& outcome, const Results& results) { answered(id, outcome, results); };
  link_.connection().send(std::move(request.query));
}

bool Session::idle() const noexcept {
  return waiting_.empty() &&
         std::all_of(in_flight_.begin(), in_flight_.end(), [](const InFlight& request) { return request.heartbeat; });
}

bool Session::withdraw(RequestId id) {
  if (waiting_.erase(id) != 0) return true;
  const auto found =
      std::find_if(in_flight_.begin(), in_flight_.end(), [id](const InFlight& request) { return request.id == id; });
  if (found != in_flight_.end()) found->done = nullptr;
  return false;
}

void Session::answered(RequestId id, const Outcome& outcome, const Results& results) {
  const auto found =
      std::find_if(in_flight_.begin(), in_flight_.end(), [id](const InFlight& request) { return request.id == id; });
  if (found == in_flight_.end()) return;
  const Handler done = std::move(found->done);
  in_flight_.erase(found);
  if (outcome.problem == Problem::none || outcome.problem == Problem::refused) {
    const Lifetime::Watch life = lifetime_.watch();
    last_alive_ = std::max(last_alive_, outcome.sent);
    user_.session_alive(outcome.sent);
    if (life.over()) return;
  }
  const Lifetime::Watch life = lifetime_.watch();
  if (done) done(outcome, results);
  if (!life.over()) rest_if_idle();
}

// As a task of its own: whoever was answered may ask more, and it is the connection that has called us.
void Session::rest_if_idle() {
  if (!link_.may_rest() || !idle()) return;
  executor_.post(lifetime_.guard([this] {
    if (!link_.may_rest() || !idle()) return;
    beat_timer_.disarm();
    in_flight_.clear();
    link_.rest();
  }));
}

void Session::fail_waiting(const Failure& why) {
  const auto waiting = std::exchange(waiting_, {});
  const Lifetime::Watch life = lifetime_.watch();
  for (const auto& [id, request] : waiting) {
    if (request.query.done) request.query.done({.problem = Problem::not_sent, .failure = why}, {});
    if (life.over()) return;
  }
}

// --- The connection --------------------------------------------------------------------------------------------------

void Session::link_ready() {
  ++epoch_;
  last_alive_ = executor_.now();
  schedule_beat();
  const Lifetime::Watch life = lifetime_.watch();
  user_.session_ready();
  if (life.over() || !link_.ready()) return;
  auto waiting = std::exchange(waiting_, {});
  for (auto& [id, request] : waiting) send(id, std::move(request));
  rest_if_idle();
}

void Session::link_down(const Failure& why, bool was_ready) {
  beat_timer_.disarm();
  in_flight_.clear();
  const Lifetime::Watch life = lifetime_.watch();
  // What waits now that a connection broke was asked for meanwhile, and gets the next one.
  if (!was_ready || link_.over()) fail_waiting(why);
  if (!life.over()) user_.session_down(why, was_ready);
  if (life.over() || waiting_.empty()) return;
  link_.want(std::all_of(waiting_.begin(), waiting_.end(), [](const auto& item) { return item.second.patient; }));
}

void Session::link_notified(const std::string& channel, const std::string& payload) {
  user_.session_notified(channel, payload);
}

void Session::stop() {
  link_.stop();
  deadline_timer_.disarm();
  beat_timer_.disarm();
  waiting_.clear();
  in_flight_.clear();
}

// --- Health ----------------------------------------------------------------------------------------------------------

void Session::schedule_beat() {
  const TimePoint now = executor_.now();
  // While something is under way, that is as good; we look again.
  const TimePoint due = saturating_add(in_flight_.empty() ? last_alive_ : now, silence_);
  beat_timer_.arm(std::max(due, now), [this] { beat(); });
}

void Session::beat() {
  if (!link_.ready()) return;
  if (in_flight_.empty() && executor_.now() >= saturating_add(last_alive_, silence_)) {
    Query question{.commands = {{.text = "SELECT 1"}}, .done = [this](const Outcome& outcome, const Results&) {
                     // A transaction that has failed, for example: nothing more can be done with this session.
                     if (outcome.problem != Problem::refused) return;
                     const Failure why{errc::unavailable, "the server refused a heartbeat: " + outcome.failure.detail};
                     const Lifetime::Watch life = lifetime_.watch();
                     user_.session_ending(why);
                     if (!life.over()) break_off(why);
                   }};
    const RequestId id = ++last_id_;
    send(id, {.query = std::move(question)});
    in_flight_.back().heartbeat = true;
    in_flight_.back().patience = saturating_add(in_flight_.back().sent, silence_);
    arm(in_flight_.back().patience);
  }
  schedule_beat();
}

// One timer for all: it is moved only to be earlier, and looks again when it finds nothing to do.
void Session::arm(TimePoint at) {
  if (at >= armed_for_) return;
  armed_for_ = at;
  deadline_timer_.arm(at, [this] { check_deadlines(); });
}

bool Session::gives_up(const InFlight& request, TimePoint now) const {
  if (now < request.patience) return false;
  // With the session go its locks, so it is kept as long as they are safe.
  return session_lease_ == nanoseconds(0) || now >= lease_valid_until(last_alive_, session_lease_);
}

void Session::check_deadlines() {
  armed_for_ = TimePoint::max();
  const Lifetime::Watch life = lifetime_.watch();
  const auto overdue = [now = executor_.now()](const InFlight& request) {
    return now >= std::min(request.deadline, request.patience);
  };
  // The answers may be there already, if it is we who were asleep.
  if (link_.ready() && std::any_of(in_flight_.begin(), in_flight_.end(), overdue)) {
    link_.connection().receive();
    if (life.over()) return;
  }
  const TimePoint now = executor_.now();
  if (!in_flight_.empty() && gives_up(in_flight_.front(), now)) {
    break_off({errc::unavailable, server().endpoint + ": no answer in time"});
    if (life.over()) return;
  }
  fail_overdue(now);
  if (life.over()) return;
  TimePoint next = TimePoint::max();
  for (const InFlight& request : in_flight_) {
    if (request.done) next = std::min(next, request.deadline);
  }
  if (!in_flight_.empty()) {
    TimePoint patience = in_flight_.front().patience;
    if (session_lease_ > nanoseconds(0)) {
      patience = std::max(patience, lease_valid_until(last_alive_, session_lease_));
    }
    next = std::min(next, patience);
  }
  for (const auto& [id, request] : waiting_) next = std::min(next, request.deadline);
  arm(next);
}

void Session::fail_overdue(TimePoint now) {
  std::vector<std::pair<Handler, TimePoint>> unanswered;
  for (InFlight& request : in_flight_) {
    if (!request.done || now < request.deadline) continue;
    // The answer may still come and must find its place.
    unanswered.emplace_back(std::exchange(request.done, nullptr), request.sent);
  }
  std::vector<Handler> unsent;
  for (auto at = waiting_.begin(); at != waiting_.end();) {
    if (now >= at->second.deadline) {
      unsent.push_back(std::move(at->second.query.done));
      at = waiting_.erase(at);
    } else {
      ++at;
    }
  }
  const Failure no_answer{errc::ambiguous, server().endpoint + ": no answer in time"};
  Failure no_connection = problem();
  if (!no_connection.code) no_connection = {errc::unavailable, "no connection in time"};
  const Lifetime::Watch life = lifetime_.watch();
  for (const auto& [done, sent] : unanswered) {
    done({.problem = Problem::unknown_outcome, .failure = no_answer, .sent = sent}, {});
    if (life.over()) return;
  }
  for (const Handler& done : unsent) {
    if (done) done({.problem = Problem::not_sent, .failure = no_connection}, {});
    if (life.over()) return;
  }
}

}  // namespace dlock::postgres

#include "backends/common/sql/session.hpp"

#include <algorithm>
#include <utility>

#include <dlock/duration.hpp>
#include <dlock/spi/backend.hpp>

namespace dlock::sql {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;

namespace {

constexpr nanoseconds longest_silence = std::chrono::seconds(2);
constexpr int beats_per_lease = 3;
constexpr nanoseconds shortest_silence = shortest_session_lease / beats_per_lease;

nanoseconds silence_for(const Dialling& dialling, const Purpose& purpose) {
  nanoseconds silence = std::min(longest_silence, dialling.response_timeout);
  if (purpose.session_lease > nanoseconds(0)) silence = std::min(silence, purpose.session_lease / beats_per_lease);
  return std::max(silence, shortest_silence);
}

}  // namespace

Session::Session(Executor& executor, const Dialling& dialling, Purpose purpose, Upkeep upkeep, User& user)
    : executor_(executor),
      dialling_(dialling),
      purpose_(std::move(purpose)),
      upkeep_(upkeep),
      user_(user),
      silence_(silence_for(dialling, purpose_)),
      requests_(executor, *this),
      beat_timer_(executor),
      reconnect_(executor, {.lasting = std::chrono::seconds(1)}, [this] { connect(); }) {}

Session::~Session() = default;

// --- Requests --------------------------------------------------------------------------------------------------------

Session::RequestId Session::request(Request request) {
  Requests::Entry entry{.id = requests_.next_id(), .deadline = request.deadline};
  const RequestId id = entry.id;
  if (over()) {
    executor_.post(lifetime_.guard([done = std::move(request.query.done), why = problem()] {
      if (done) done({.problem = Problem::not_sent, .failure = why}, {});
    }));
    return id;
  }
  entry.payload.done = std::move(request.query.done);
  entry.payload.request = std::move(request);
  if (ready()) {
    send(std::move(entry));
    return id;
  }
  const bool patient = entry.payload.request.patient;
  requests_.wait(std::move(entry));
  want(patient);
  return id;
}

void Session::send(Requests::Entry entry) {
  entry.sent = executor_.now();
  if (!entry.payload.heartbeat) {
    entry.patience =
        entry.payload.request.blocks ? entry.deadline : saturating_add(entry.sent, dialling_.response_timeout);
  }
  Query query = std::move(entry.payload.request.query);
  query.done = [this, id = entry.id](const Outcome& outcome, const Results& results) {
    answered(id, outcome, results);
  };
  requests_.sent(std::move(entry));
  connection_->send(std::move(query));
}

bool Session::idle() const noexcept {
  const auto& under_way = requests_.under_way();
  return requests_.waiting().empty() &&
         std::all_of(under_way.begin(), under_way.end(), [](const auto& entry) { return entry.payload.heartbeat; });
}

void Session::answered(RequestId id, const Outcome& outcome, const Results& results) {
  const auto entry = requests_.take(id);
  if (!entry) return;
  const Lifetime::Watch life = lifetime_.watch();
  const bool aside = entry->payload.request.aside;
  const bool about_locks = !entry->payload.heartbeat && !aside;
  if (outcome.problem == Problem::unknown_outcome && about_locks) closed_at_request_ = true;
  if (outcome.problem == Problem::none || outcome.problem == Problem::refused) {
    last_alive_ = std::max(last_alive_, outcome.sent);
    user_.session_alive(outcome.sent);
    if (life.over()) return;
    // The session leaves a server that is of no use: its refusal is no answer.
    const bool serves = dialling_.dialect.meaning_of(outcome).remedy != Remedy::reconnect;
    if (about_locks && serves) closed_at_request_ = false;
    if (!closed_at_request_ && !aside && serves && !reconnect_.is_answered()) {
      reconnect_.answered();
      user_.session_answered();
      if (life.over()) return;
    }
  }
  if (entry->payload.done) entry->payload.done(outcome, results);
  if (!life.over()) leave_if_idle();
}

void Session::fail_waiting(const Failure& why) {
  const auto waiting = requests_.take_waiting();
  const Lifetime::Watch life = lifetime_.watch();
  for (const auto& entry : waiting) {
    if (entry.payload.done) entry.payload.done({.problem = Problem::not_sent, .failure = why}, {});
    if (life.over()) return;
  }
}

// --- The connection --------------------------------------------------------------------------------------------------

void Session::want(bool patient) {
  if (patient && dialling_.keeps_away()) {
    if (reconnect_.is_idle()) reconnect_.pause_until(dialling_.full->next());
    if (reconnect_.is_pausing()) return;
  }
  reconnect_.want();
}

void Session::connect() {
  connection_ = dialling_.connections(executor_, purpose_, *this);
  connection_->open(saturating_add(executor_.now(), dialling_.connect_timeout));
}

void Session::connection_ready() {
  breaking_off_ = false;
  reconnect_.ready();
  server_ = connection_->server();
  makes_room_ = upkeep_ == Upkeep::kept_up && dialling_.full != nullptr && dialling_.full->makes_room();
  if (makes_room_) dialling_.full->keep_away();
  ++epoch_;
  last_alive_ = executor_.now();
  schedule_beat();
  const Lifetime::Watch life = lifetime_.watch();
  user_.session_ready();
  if (life.over() || !ready()) return;
  for (auto& entry : requests_.take_waiting()) send(std::move(entry));
  // The observer must soon learn whether the server answers again.
  if (epoch_ > 1 && requests_.under_way().empty()) send_heartbeat();
  leave_if_idle();
}

void Session::connection_lost(const Failure& why) {
  const bool was_ready = reconnect_.is_ready();
  Failure reason = why;
  if (was_ready && !breaking_off_ && !reconnect_.is_answered()) reason.detail += common::nothing_answered;
  const auto gone = std::move(connection_);  // it is on the call stack
  if (dialling_.full != nullptr && !was_ready && dialling_.dialect.is_about_a_full_server(reason)) {
    dialling_.full->refused(reason);
    reconnect_.down_until(reason, dialling_.full->next());
  } else {
    reconnect_.down(reason);
  }
  if (upkeep_ == Upkeep::once) reconnect_.stop();
  beat_timer_.disarm();
  const auto answered = requests_.take_sent();  // by the connection
  const Lifetime::Watch life = lifetime_.watch();
  // If a connection breaks, the requests that wait are newer, and get the next connection.
  if (!was_ready || over()) fail_waiting(reason);
  if (!life.over()) user_.session_down(reason, was_ready);
  const auto& waiting = requests_.waiting();
  if (life.over() || waiting.empty()) return;
  want(std::all_of(waiting.begin(), waiting.end(),
                   [](const auto& item) { return item.second.payload.request.patient; }));
}

void Session::connection_notified(const std::string& channel, const std::string& payload) {
  user_.session_notified(channel, payload);
}

// In a later task: a handler may send more requests, and the connection may be on the call stack.
void Session::leave_if_idle() {
  const auto leaves = [this] { return makes_room_ && ready() && idle() && dialling_.full->makes_room(); };
  if (!leaves()) return;
  executor_.post(lifetime_.guard([this, leaves] {
    if (!leaves()) return;
    beat_timer_.disarm();
    (void)requests_.take_sent();  // a heartbeat, at most
    reconnect_.rest();
    connection_.reset();
    user_.session_left();
  }));
}

void Session::break_off(const Failure& why) {
  if (!connection_) return;
  breaking_off_ = true;
  connection_->break_off(why);
}

void Session::stop() {
  reconnect_.stop();
  connection_.reset();
  beat_timer_.disarm();
  requests_.clear();
}

// --- Health ----------------------------------------------------------------------------------------------------------

void Session::schedule_beat() {
  const TimePoint now = executor_.now();
  // A request in flight is as good as a heartbeat.
  const TimePoint due = saturating_add(requests_.under_way().empty() ? last_alive_ : now, silence_);
  beat_timer_.arm(std::max(due, now), [this] { beat(); });
}

void Session::beat() {
  if (!ready()) return;
  if (requests_.under_way().empty() && executor_.now() >= saturating_add(last_alive_, silence_)) send_heartbeat();
  schedule_beat();
}

void Session::send_heartbeat() {
  Query question{.commands = {{.text = dialling_.dialect.heartbeat()}},
                 .done = [this](const Outcome& outcome, const Results&) {
                   // For example, its transaction has failed: this session is of no use.
                   if (outcome.problem != Problem::refused) return;
                   const Failure why{errc::unavailable, "the server refused a heartbeat: " + outcome.failure.detail};
                   const Lifetime::Watch life = lifetime_.watch();
                   user_.session_ending(why);
                   if (!life.over()) break_off(why);
                 }};
  Requests::Entry entry{.id = requests_.next_id(), .patience = saturating_add(executor_.now(), silence_)};
  entry.payload.heartbeat = true;
  entry.payload.done = std::move(question.done);
  entry.payload.request.query = std::move(question);
  send(std::move(entry));
}

// --- Deadlines -------------------------------------------------------------------------------------------------------

void Session::requests_catch_up() {
  if (ready()) connection_->receive();
}

TimePoint Session::requests_unresponsive() {
  const TimePoint safe_until = lease_valid_until(last_alive_, purpose_.session_lease);
  const bool holds = purpose_.session_lease > nanoseconds(0) && user_.session_holds();
  if (holds && executor_.now() < safe_until) return safe_until;
  break_off({errc::unavailable, server().endpoint + ": no answer in time"});
  return TimePoint::max();
}

void Session::requests_overdue(std::vector<Requests::Entry> sent, std::vector<Requests::Entry> unsent) {
  const Failure no_answer{errc::ambiguous, server().endpoint + ": no answer in time"};
  Failure no_connection = problem();
  if (!no_connection.code) no_connection = {errc::unavailable, "no connection in time"};
  const Lifetime::Watch life = lifetime_.watch();
  for (const auto& entry : sent) {
    entry.payload.done({.problem = Problem::unknown_outcome, .failure = no_answer, .sent = entry.sent}, {});
    if (life.over()) return;
  }
  for (const auto& entry : unsent) {
    if (entry.payload.done) entry.payload.done({.problem = Problem::not_sent, .failure = no_connection}, {});
    if (life.over()) return;
  }
}

}  // namespace dlock::sql

#include "backends/zookeeper/connection/session.hpp"

#include <algorithm>
#include <utility>

#include "util/duration_text.hpp"

namespace dlock::zookeeper {

using std::chrono::milliseconds;

namespace {

// The ensemble refuses to remove this node, and has to agree on that as on any write. Its parent does not exist either,
// so a server checks no rights, which it may do by itself (enableEagerACLCheck). No lock's node has such a name: the
// encoding of names has no such '%'.
constexpr const char* no_node = "/%heartbeat/none";

// Before the next attempt, if too many handles are closing.
constexpr milliseconds closing_pause{500};
constexpr std::chrono::seconds longest_pause{2};
// A server that stops breaks one or two connections. So many in a row, broken after a request, are a refusal.
constexpr std::size_t refused_from = 3;
// A connection that lasted so long is good, even if the kind of request that broke the last one was not repeated.
constexpr std::chrono::seconds lasting{10};

bool is_unanswered(const Outcome& outcome) {
  return outcome.problem == Problem::unknown_outcome || outcome.problem == Problem::session_over;
}

}  // namespace

Session::Session(Executor& executor, const Options& options, HandleFactory handles, User& user)
    : executor_(executor),
      options_(options),
      user_(user),
      connector_(executor, options, std::move(handles), *this,
                 [this](const Failure& why, bool last) {
                   problem_ = why;
                   last ? reconnect_.down(why) : reconnect_.down_until(why, executor_.now());
                 }),
      reconnect_(executor, {.longest_pause = longest_pause, .lasting = forever.value()},
                 [this] {
                   held_back_ = false;
                   connector_.next_host();
                   open();
                 }),
      until_used_(longest_pause),
      connect_timer_(executor),
      heartbeat_timer_(executor),
      deadline_timer_(executor) {}

std::int64_t Session::id() const noexcept {
  return connector_.handle() != nullptr ? connector_.handle()->session_id() : 0;
}

// --- Connecting ------------------------------------------------------------------------------------------------------

void Session::want() {
  if (!held_back_) reconnect_.want();
}

void Session::open() {
  if (!connector_.open()) return reconnect_.pause_until(saturating_add(executor_.now(), closing_pause));
  if (!problem_.code) problem_ = {errc::unavailable, options_.endpoint() + ": not connected yet"};
  if (connect_timer_.armed()) return;
  connect_timer_.arm(saturating_add(executor_.now(), options_.connect_timeout), [this] {
    const std::string what = link_ == Link::proving ? ": no answer to a request within the connect timeout of "
                                                    : ": no session within the connect timeout of ";
    suspend({errc::unavailable, options_.endpoint() + what +
                                    util::to_text(std::chrono::duration_cast<milliseconds>(options_.connect_timeout))});
  });
}

void Session::session_event(Handle::Event event, const Failure& why) {
  using Event = Handle::Event;
  const std::string detail = options_.endpoint() + ": " + why.detail;
  switch (event) {
    case Event::connected:
      return connected();
    case Event::disconnected:
      return disconnected(why);
    case Event::expired:
      return end(options_.endpoint() + ": the session expired: " + why.detail);
    case Event::auth_failed:
      return end(detail, errc::access_denied);
    case Event::failed:
      return end(detail);
  }
}

void Session::connected() {
  const TimePoint now = executor_.now();
  const milliseconds granted = connector_.handle()->session_timeout();
  const bool fresh = reconnect_.is_connecting();
  if (fresh) {
    if (!connector_.accept(granted)) return open();
    ++epoch_;
    liveness_.begin(connector_.opened_at(), now, granted);
    reported_until_ = TimePoint::min();
  } else if (liveness_.is_over(now)) {
    return;  // deadline_timer_ is about to report that
  } else if (granted < liveness_.timeout()) {
    return end(options_.endpoint() + ": a server granted a session timeout of only " + util::to_text(granted) +
               ", another one granted " + util::to_text(liveness_.timeout()));
  }
  ++connection_;
  link_ = Link::proving;
  beating_ = false;
  good_ = false;
  in_flight_ = {};
  await_deadline();
  // For a fresh session, reconnect_ has already paused.
  if (fresh || hung_up_ < 2) return beat();
  const auto pause = std::min(until_used_.next(executor_), liveness_.probe_interval() / 2);
  heartbeat_timer_.arm(saturating_add(now, pause), [this] { beat(); });
}

// The first request was answered.
void Session::proven() {
  if (liveness_.is_over(executor_.now())) return;  // deadline_timer_ is about to report that
  const bool fresh = reconnect_.is_connecting();
  link_ = Link::ready;
  connect_timer_.disarm();
  problem_ = {};
  ready_since_ = executor_.now();
  if (fresh) reconnect_.ready();
  user_.session_ready(fresh);
  report_alive();
  if (hung_up_ == 0) check_good(true);
}

// The server refuses the client, and closes the connection. A different server may accept an established session.
void Session::refused(const Failure& why) {
  const std::string detail = options_.endpoint() + ": " + why.detail;
  if (reconnect_.is_connecting()) return end(detail, errc::access_denied);
  suspend({why.code, detail});
}

void Session::request_answered(Kind kind, const Outcome& outcome) {
  if (is_unanswered(outcome)) return;  // in flight until the connection is known to be broken
  const auto index = static_cast<std::size_t>(kind);
  if (in_flight_.at(index) > 0) --in_flight_.at(index);
  doubtful_.reset(index);
  check_good(false);
}

bool Session::nothing_in_flight() const noexcept {
  return std::ranges::all_of(in_flight_, [](std::size_t count) { return count == 0; });
}

// lasted: the connection counts as good without an answer if no request is in flight.
void Session::check_good(bool lasted) {
  if (good_ || !ready() || !(lasted ? nothing_in_flight() : doubtful_.none())) return;
  good_ = true;
  hung_up_ = 0;
  doubtful_.reset();
  until_used_.reset();
  reconnect_.proven();
  user_.session_good();
}

void Session::disconnected(const Failure& broken) {
  if (reconnect_.is_ready() && link_ == Link::none) return;  // a session re-established too late
  if (link_ == Link::proving || !nothing_in_flight()) ++hung_up_;
  for (std::size_t kind = 0; kind < in_flight_.size(); ++kind) {
    if (in_flight_.at(kind) > 0) doubtful_.set(kind);
  }
  const Failure why{errc::unavailable, options_.endpoint() + ": " + why_broken(broken)};
  if (reconnect_.is_connecting()) return end(why.detail);  // no request of a user was sent
  const bool refused = std::exchange(link_, Link::none) == Link::proving && problem_.code == errc::access_denied;
  heartbeat_timer_.disarm();
  if (!refused) suspend(why);  // otherwise the known reason is more specific
}

std::string Session::why_broken(const Failure& broken) const {
  if (hung_up_ < refused_from) return broken.detail;
  if (link_ == Link::proving) {
    return "the server closes each connection upon the first request; mostly it requires an identity (auth= in the "
           "URL) or SASL, which dlock does not support";
  }
  return "the server closes each connection upon requests about locks; mostly a proxy does not let them pass";
}

void Session::suspend(const Failure& why) {
  problem_ = why;
  user_.session_suspended(why);
}

// --- Life ------------------------------------------------------------------------------------------------------------

void Session::beat() {
  beat_later(saturating_add(executor_.now(), liveness_.probe_interval()));
  if (std::exchange(beating_, true)) return;
  confirm_leader([this, connection = connection_](const Outcome& outcome) {
    if (connection == connection_) heartbeat_answered(outcome);
  });
}

void Session::beat_later(TimePoint at) {
  heartbeat_timer_.arm(at, [this] {
    if (liveness_.probe_at() <= executor_.now()) return beat();
    // Other requests served as the heartbeat.
    beat_later(liveness_.probe_at());
    report_alive();
  });
}

void Session::heartbeat_answered(const Outcome& outcome) {
  beating_ = false;
  if (outcome.problem == Problem::session_over && outcome.failure.code == errc::access_denied) {
    return refused(outcome.failure);
  }
  if (is_unanswered(outcome)) return;
  if (link_ == Link::proving) return proven();
  if (outcome.problem == Problem::none) report_alive();  // otherwise the deadline decides
  if (executor_.now() >= saturating_add(ready_since_, lasting)) check_good(true);
}

void Session::confirm_leader(Handle::DoneHandler done) {
  handle().remove(no_node, [this, epoch = epoch_, done = std::move(done)](Outcome outcome) {
    if (outcome.problem == Problem::no_node) {
      outcome = {.problem = Problem::none, .failure = {}, .sent = outcome.sent};
      if (epoch == epoch_) acknowledged(outcome.sent);
    }
    done(outcome);
  });
}

void Session::report_alive() {
  if (valid_until() <= reported_until_) return;
  reported_until_ = valid_until();
  user_.session_alive(reported_until_);
}

void Session::await_deadline() {
  deadline_timer_.arm(liveness_.expires_at(), [this] {
    if (!liveness_.is_over(executor_.now())) return await_deadline();
    end(problem_.code == errc::access_denied ? problem_.detail : overdue());
  });
}

std::string Session::overdue() const {
  return options_.endpoint() + ": no answer for most of the session timeout of " + util::to_text(liveness_.timeout());
}

Failure Session::problem() const {
  // ready() may notice the deadline before its timer fires.
  if (link_ == Link::ready && !ready()) return {errc::unavailable, overdue()};
  return problem_;
}

// --- The end ---------------------------------------------------------------------------------------------------------

void Session::end(const std::string& why, errc problem) {
  const bool stood = reconnect_.is_ready();
  const bool refused = problem == errc::access_denied;
  const Failure failure{problem, why};
  reset();
  problem_ = failure;
  // After a refusal, not before the next want(), and with a pause.
  refused ? reconnect_.down_until(failure, TimePoint::max()) : reconnect_.down(failure);
  // Clients that lose their sessions together must not reconnect together: want() does not shorten the random pause.
  held_back_ = stood && !refused;
  // The library reports a connection before the refusal of its credentials. Users must not want() the session again.
  if (!stood || refused) user_.session_suspended(failure);
  // Before the handle is closed: that removes the nodes, and a different client gets the lock.
  if (stood) user_.session_lost({errc::lost, why});
  connector_.close_handle();
  if (stood) watch_fired(all_watches);
}

void Session::rest() {
  if (reconnect_.is_idle() || reconnect_.is_over()) return;
  reconnect_.rest();
  reset();
  held_back_ = false;
  hung_up_ = 0;
  doubtful_.reset();
  problem_ = {};
  connector_.close_handle();
  watch_fired(all_watches);
}

void Session::reset() {
  ++connection_;
  link_ = Link::none;
  beating_ = false;
  liveness_.end();
  connect_timer_.disarm();
  heartbeat_timer_.disarm();
  deadline_timer_.disarm();
}

void Session::close(std::function<void()> done) {
  reconnect_.stop();
  reset();
  problem_ = {errc::closed, "the client was closed"};
  connector_.close(std::move(done));
}

void Session::watch_fired(Handle::WatchId id) {
  if (watch_fired_) watch_fired_(id);
}

}  // namespace dlock::zookeeper

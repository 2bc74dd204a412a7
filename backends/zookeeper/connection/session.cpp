#include "backends/zookeeper/connection/session.hpp"

#include <algorithm>
#include <utility>

#include "util/duration_text.hpp"

namespace dlock::zookeeper {

using std::chrono::milliseconds;

namespace {

// So many handles may be closing, with two threads each, before another one is made. Closing one takes seconds where
// the network swallows everything.
constexpr std::size_t most_closing = 4;
constexpr milliseconds closing_pause{500};

// A removal of this is refused, which the ensemble has to agree on as on any write. What it would be below is not there
// either, so no rights are asked for: those a server may judge by itself (enableEagerACLCheck). No lock's node is named
// like that, because the encoding of names has no such '%'.
constexpr const char* no_node = "/%heartbeat/none";

// A leader hears twice a tick of the sessions that others serve, and ends a session by what it has heard. How long a
// tick is we are not told; a session timeout has at least two, unless minSessionTimeout says otherwise.
constexpr milliseconds heard_late(milliseconds granted) {
  return granted / 4;
}
// Of the requests in that time, so many are remembered.
constexpr int most_remembered = 16;

// Looks at an attempt in the time that is given to a silent host.
constexpr int looks = 4;
constexpr milliseconds between_looks{1};  // at least

// However short a session is asked for: servers grant more (minSessionTimeout), and some networks need it to connect.
constexpr milliseconds longest_patience_at_least{1000};

constexpr std::chrono::seconds longest_pause{2};
// A server that stops breaks a connection or two. So many in a row that break upon a request are a refusal.
constexpr std::size_t refused_from = 3;
// A connection that stood for so long is good, although what broke the one before was not asked again.
constexpr std::chrono::seconds lasting{10};

std::string text(std::chrono::nanoseconds duration) {
  return util::to_text(std::chrono::duration_cast<milliseconds>(duration));
}

}  // namespace

Session::Session(Executor& executor, const Options& options, HandleFactory handles, User& user)
    : executor_(executor),
      options_(options),
      handles_(std::move(handles)),
      user_(user),
      reconnect_(executor, {.longest_pause = longest_pause, .lasting = forever.value()}, [this] { connect(); }),
      until_used_(longest_pause),
      attempt_timer_(executor),
      connect_timer_(executor),
      heartbeat_timer_(executor),
      deadline_timer_(executor) {}

Session::~Session() {
  // What waits for answers may hold watches.
  handle_.reset();
  closing_.clear();
}

bool Session::ready() const noexcept {
  return reconnect_.is_ready() && !suspended_ && executor_.now() < deadline_;
}

std::int64_t Session::id() const noexcept {
  return handle_ ? handle_->session_id() : 0;
}

milliseconds Session::granted_timeout() const noexcept {
  return handle_ ? handle_->session_timeout() : milliseconds(0);
}

// --- Attempts --------------------------------------------------------------------------------------------------------

void Session::want() {
  if (!held_back_) reconnect_.want();
}

void Session::connect() {
  held_back_ = false;
  asked_again_ = false;
  choose_host();
  dial();
}

// In an order of our own, so that clients are spread over the hosts and each attempt begins with another one.
void Session::choose_host() {
  std::vector<Host>& hosts = dialled_.hosts;
  if (!hosts.empty()) {
    std::rotate(hosts.begin(), hosts.begin() + 1, hosts.end());
    return;
  }
  dialled_ = options_;
  for (std::size_t left = hosts.size(); left > 1; --left) std::swap(hosts[left - 1], hosts[executor_.random() % left]);
}

void Session::dial() {
  if (closing_.size() >= most_closing) {
    return reconnect_.pause_until(saturating_add(executor_.now(), closing_pause));
  }
  last_attempt_ = executor_.now();
  silent_since_ = last_attempt_;
  if (!problem_.code) problem_ = {errc::unavailable, options_.endpoint() + ": not connected yet"};
  if (!connect_timer_.armed()) {
    connect_timer_.arm(saturating_add(last_attempt_, options_.connect_timeout),
                       [this] { could_not_connect_in_time(); });
  }
  attempt_timer_.arm(last_attempt_ + patience() / looks, [this] { look_at_attempt(); });
  try {
    handle_ = handles_(executor_, dialled_, *this);
  } catch (const Error& e) {
    // Not from inside want().
    executor_.post(lifetime_.guard([this, why = e.detail()] {
      if (reconnect_.is_connecting() && !handle_) end(why, errc::unavailable);
    }));
  }
}

// How long a host may be silent. All of them get their turn within the connect timeout; if none answers, each gets
// twice the time in the next round, because they may just be slow. A session that came after half of its timeout would
// be of no use (came_too_late()).
std::chrono::nanoseconds Session::patience() const {
  const std::chrono::nanoseconds longest = std::max(options_.session_timeout / 2, longest_patience_at_least);
  const std::size_t hosts = std::max<std::size_t>(1, dialled_.hosts.size());
  std::chrono::nanoseconds patience =
      std::max<std::chrono::nanoseconds>(options_.connect_timeout / static_cast<int>(hosts), between_looks);
  for (std::size_t round = silent_hosts_ / hosts; round > 0 && patience < longest; --round) patience *= 2;
  return std::min(patience, longest);
}

// Where hosts refuse, or names are resolved slowly, the client library goes on by itself.
void Session::look_at_attempt() {
  const TimePoint now = executor_.now();
  if (!handle_ || !handle_->waits_for_server()) silent_since_ = now;
  if (now >= saturating_add(silent_since_, patience())) return leave_silent_host();
  const auto pause = std::max<std::chrono::nanoseconds>(patience() / looks, between_looks);
  attempt_timer_.arm(saturating_add(now, pause), [this] { look_at_attempt(); });
}

void Session::leave_silent_host() {
  problem_ = {errc::unavailable, options_.endpoint() + ": a server did not answer within " + text(patience())};
  const bool was_last = ++silent_hosts_ % std::max<std::size_t>(1, dialled_.hosts.size()) == 0;
  attempt_timer_.disarm();
  retire_handle();
  if (was_last) return reconnect_.down(problem_);
  reconnect_.down_until(problem_, executor_.now());
}

void Session::could_not_connect_in_time() {
  problem_ = {errc::unavailable, options_.endpoint() +
                                     (proving_ ? ": no answer to a request within the connect timeout of "
                                               : ": no session within the connect timeout of ") +
                                     text(options_.connect_timeout)};
  const Failure why = problem_;
  user_.session_suspended(why);
}

void Session::session_event(Handle::Event event) {
  using Event = Handle::Event;
  const std::string why = handle_->problem().detail;
  switch (event) {
    case Event::connected:
      return connected();
    case Event::disconnected:
      return disconnected();
    case Event::expired:
      return end(options_.endpoint() + ": the session expired: " + why, errc::unavailable);
    case Event::auth_failed:
      return end(options_.endpoint() + ": " + why, errc::access_denied);
    case Event::failed:
      return end(options_.endpoint() + ": " + why, errc::unavailable);
  }
}

void Session::connected() {
  const TimePoint now = executor_.now();
  const bool fresh = reconnect_.is_connecting();
  const milliseconds granted = handle_->session_timeout();
  if (fresh && came_too_late(granted)) {
    asked_again_ = true;
    retire_handle();
    return dial();
  }
  attempt_timer_.disarm();
  silent_hosts_ = 0;
  if (fresh) {
    ++epoch_;
    granted_ = granted;
    last_heard_ = last_attempt_;  // the leader made it after that
    known_ = {};
    valid_until_ = lease_valid_until(last_heard_, granted_);
    told_until_ = TimePoint::min();
    deadline_ = std::max(valid_until_, saturating_add(lease_valid_until(now, granted_), -heard_late(granted_)));
  } else if (now >= deadline_) {
    return;  // the timer is about to say so
  } else if (granted < granted_) {
    return end(options_.endpoint() + ": a server granted a session timeout of only " + text(granted) +
                   ", another one granted " + text(granted_),
               errc::unavailable);
  }
  ++connection_;
  proving_ = true;
  beating_ = false;
  good_ = false;
  under_way_ = {};
  await_deadline();
  // Before a fresh one there was a pause.
  if (fresh || hung_up_ < 2) return beat();
  const auto pause = std::min<std::chrono::nanoseconds>(until_used_.next(executor_), granted_ / 8);
  heartbeat_timer_.arm(saturating_add(now, pause), [this] { beat(); });
}

// The first request was answered.
void Session::stands() {
  const bool fresh = reconnect_.is_connecting();
  if (executor_.now() >= deadline_) return;  // the timer is about to say so
  proving_ = false;
  suspended_ = false;
  connect_timer_.disarm();
  problem_ = {};
  ready_since_ = executor_.now();
  if (fresh) reconnect_.ready();
  user_.session_ready(fresh);
  tell_alive();
  if (asks_nothing() && hung_up_ == 0) good();
}

// The server refuses the client, and closes the connection. A session that stood may be accepted by another one.
void Session::refused(const Failure& why) {
  const Failure failure{why.code, options_.endpoint() + ": " + why.detail};
  if (reconnect_.is_connecting()) return end(failure.detail, errc::access_denied);
  problem_ = failure;
  user_.session_suspended(failure);
}

void Session::answered(Kind kind, const Outcome& outcome) {
  // Counts as under way until the connection is known to be broken.
  if (outcome.problem == Problem::unknown_outcome || outcome.problem == Problem::session_over) return;
  const auto index = static_cast<std::size_t>(kind);
  if (under_way_.at(index) > 0) --under_way_.at(index);
  doubtful_.reset(index);
  if (!good_ && doubtful_.none() && ready()) good();
}

bool Session::asks_nothing() const noexcept {
  return std::ranges::all_of(under_way_, [](std::size_t count) { return count == 0; });
}

void Session::good() {
  good_ = true;
  hung_up_ = 0;
  doubtful_.reset();
  until_used_.reset();
  reconnect_.proven();
  user_.session_good();
}

// The session may be as old as its handle, and counts from then. A lease of it is extended for the first time a quarter
// of the timeout from now: if too little is left for that, as after an outage, a session that is asked for now is
// better. But where that is late again, servers are slow, and heartbeats make it valid in time.
bool Session::came_too_late(milliseconds granted) const {
  return !asked_again_ && executor_.now() >= saturating_add(last_attempt_, granted / 2);
}

void Session::disconnected() {
  if (suspended_ && !proving_) return;  // what came back came too late
  if (proving_ || !asks_nothing()) ++hung_up_;
  for (std::size_t kind = 0; kind < under_way_.size(); ++kind) {
    if (under_way_.at(kind) > 0) doubtful_.set(kind);
  }
  const Failure why{errc::unavailable, options_.endpoint() + ": " + why_broken()};
  if (reconnect_.is_connecting()) return end(why.detail, errc::unavailable);  // no request of the user's was sent
  const bool refused = std::exchange(proving_, false) && problem_.code == errc::access_denied;
  suspended_ = true;
  heartbeat_timer_.disarm();
  if (refused) return;  // what is known says more
  problem_ = why;
  user_.session_suspended(why);
}

std::string Session::why_broken() const {
  if (hung_up_ < refused_from) return handle_->problem().detail;
  if (proving_) {
    return "the server closes each connection upon the first request; mostly it requires an identity (auth= in the "
           "URL) or SASL, which dlock does not support";
  }
  return "the server closes each connection upon requests about locks; mostly a proxy does not let them pass";
}

// --- Life ------------------------------------------------------------------------------------------------------------

void Session::heard(TimePoint sent) {
  if (!reconnect_.is_ready() && !proving_) return;
  if (executor_.now() >= deadline_) return;  // nothing is brought back to life
  // What was carried out after `sent` shows that the session lived, but the leader may count from what it had heard
  // before: from requests that are so much older that it was told of them.
  while (!known_.empty() && saturating_add(known_.front(), heard_late(granted_)) <= sent) {
    valid_until_ = std::max(valid_until_, lease_valid_until(known_.front(), granted_));
    known_.pop_front();
  }
  deadline_ = std::max(deadline_, valid_until_);
  if (sent <= last_heard_) return;
  last_heard_ = sent;
  if (known_.empty() || saturating_add(known_.back(), heard_late(granted_) / most_remembered) <= sent) {
    known_.push_back(sent);
  }
}

void Session::beat() {
  heartbeat_timer_.arm(saturating_add(executor_.now(), heartbeat_interval()), [this] { beat_due(); });
  if (std::exchange(beating_, true)) return;
  agree([this, connection = connection_](const Outcome& outcome) {
    if (connection != connection_) return;
    beating_ = false;
    if (outcome.problem == Problem::session_over && outcome.failure.code == errc::access_denied) {
      return refused(outcome.failure);
    }
    if (outcome.problem == Problem::unknown_outcome || outcome.problem == Problem::session_over) return;
    if (proving_) return stands();
    if (outcome.problem == Problem::none) tell_alive();  // else the deadline judges
    const bool lasted = executor_.now() >= saturating_add(ready_since_, lasting);
    if (!good_ && asks_nothing() && lasted && ready()) good();
  });
}

void Session::agree(Handle::DoneHandler done) {
  handle_->remove(no_node, [this, epoch = epoch_, done = std::move(done)](Outcome outcome) {
    if (outcome.problem == Problem::no_node) {
      outcome = {.problem = Problem::none, .failure = {}, .sent = outcome.sent};
      if (epoch == epoch_) heard(outcome.sent);
    }
    done(outcome);
  });
}

void Session::beat_due() {
  const TimePoint next = saturating_add(last_heard_, heartbeat_interval());
  if (next <= executor_.now()) return beat();
  // Other requests did the work.
  heartbeat_timer_.arm(next, [this] { beat_due(); });
  tell_alive();
}

void Session::tell_alive() {
  if (valid_until_ <= told_until_) return;
  told_until_ = valid_until_;
  user_.session_alive(valid_until_);
}

void Session::await_deadline() {
  deadline_timer_.arm(deadline_, [this] {
    if (executor_.now() < deadline_) return await_deadline();
    end(problem_.code == errc::access_denied ? problem_.detail : overdue(), errc::unavailable);
  });
}

std::string Session::overdue() const {
  return options_.endpoint() + ": no answer for most of the session timeout of " + text(granted_);
}

Failure Session::problem() const {
  // What judges by the deadline may come before its timer.
  if (reconnect_.is_ready() && !suspended_ && executor_.now() >= deadline_) return {errc::unavailable, overdue()};
  return problem_;
}

// --- The end ---------------------------------------------------------------------------------------------------------

void Session::end(const std::string& why, errc problem) {
  const bool stood = reconnect_.is_ready();
  forget_times();
  problem_ = {problem, why};
  const Failure failure = problem_;
  const bool refused = problem == errc::access_denied;
  if (refused) {
    reconnect_.down_until(failure, TimePoint::max());  // until it is wanted again, and not at once
  } else {
    reconnect_.down(failure);
  }
  // All who lose a session at the same moment want a new one; what was drawn at random holds.
  held_back_ = stood && !refused;
  // The library connects before it hears that its credentials are refused. Users must then not ask for it again.
  if (!stood || refused) user_.session_suspended(failure);
  // Before it is closed: then its nodes go, and another client gets the lock.
  if (stood) user_.session_lost({errc::lost, why});
  retire_handle();
  if (stood) fire_watches();
}

void Session::rest() {
  if (reconnect_.is_idle() || reconnect_.is_over()) return;
  reconnect_.rest();
  held_back_ = false;
  hung_up_ = 0;
  doubtful_.reset();
  forget_times();
  problem_ = {};
  retire_handle();
  fire_watches();
}

void Session::forget_times() {
  ++connection_;
  proving_ = false;
  attempt_timer_.disarm();  // there is none to look at
  connect_timer_.disarm();
  heartbeat_timer_.disarm();
  deadline_timer_.disarm();
  valid_until_ = TimePoint::min();
  beating_ = false;
}

// Destroyed only when it is closed, so that what is left of its session goes, and close() can wait for that.
void Session::retire_handle() {
  if (!handle_) return;
  Handle* const handle = closing_.emplace_back(std::move(handle_)).get();
  handle->close([this, handle] {
    // Later: this is called by the handle.
    executor_.post(lifetime_.guard([this, handle] {
      std::erase_if(closing_, [&](const auto& closing) { return closing.get() == handle; });
      finish_closing();
    }));
  });
}

void Session::close(std::function<void()> done) {
  reconnect_.stop();
  forget_times();
  problem_ = {errc::closed, "the client was closed"};
  closed_ = std::move(done);
  retire_handle();
  executor_.post(lifetime_.guard([this] { finish_closing(); }));
}

void Session::finish_closing() {
  if (!closing_.empty()) return;
  if (const auto closed = std::exchange(closed_, nullptr)) closed();
}

// --- Watches ---------------------------------------------------------------------------------------------------------

std::unique_ptr<Session::Watch> Session::watch(std::function<void()> changed) {
  watches_.emplace(++last_watch_, std::move(changed));
  return std::make_unique<Watch>(*this, last_watch_);
}

void Session::forget_watch(Handle::WatchId id) noexcept {
  watches_.erase(id);
}

void Session::watch_fired(Handle::WatchId id) {
  if (auto watch = watches_.extract(id)) watch.mapped()();
}

// Those that there are now: a handler may watch again.
void Session::fire_watches() {
  std::vector<Handle::WatchId> ids;
  ids.reserve(watches_.size());
  for (const auto& [id, changed] : watches_) ids.push_back(id);
  std::sort(ids.begin(), ids.end());
  for (const Handle::WatchId id : ids) watch_fired(id);
}

}  // namespace dlock::zookeeper

#include "backends/etcd/connection/session.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "backends/common/reconnect.hpp"
#include "backends/etcd/locks/keys.hpp"
#include "util/duration_text.hpp"

namespace dlock::etcd {

namespace {

// After an answer that did not count.
constexpr std::chrono::milliseconds soon{50};
// Leases of sessions that have ended; they expire by themselves if they are not revoked.
constexpr std::size_t most_over = 16;

}  // namespace

Session::Session(Client& client, User& user)
    : executor_(client.executor()),
      client_(client),
      user_(user),
      problem_{errc::unavailable, client.options().endpoint() + ": not connected yet"},
      timer_(executor_),
      deadline_timer_(executor_) {}

Session::~Session() = default;

bool Session::ready() const noexcept {
  return lease_ != 0 && client_.ready() && executor_.now() < valid_until_;
}

void Session::want() {
  client_.want();
  const bool first = !std::exchange(wanted_, true);
  if ((std::exchange(refused_, false) || first) && lease_ == 0) begin();
}

// --- The connection --------------------------------------------------------------------------------------------------

void Session::client_ready() {
  if (closing_) return;
  for (const std::int64_t lease : std::exchange(over_, {})) revoke(lease);
  if (lease_ == 0) return begin();
  const Lifetime::Watch life = lifetime_.watch();
  user_.session_ready();
  if (!life.over() && lease_ != 0) beat();
}

void Session::client_down(const Failure& why, bool in_order) {
  stop_attempts();
  problem_ = why;
  if (closing_ || in_order) return;
  // Another member may be better, and there is something to keep.
  if (lease_ != 0 && common::is_final_refusal(why)) {
    timer_.arm(saturating_add(executor_.now(), backoff_.next(executor_)), [this] { client_.want(); });
  }
  user_.session_suspended(why);
}

void Session::stop_attempts() {
  ++attempt_;
  beating_ = false;
  timer_.disarm();
}

// --- A new one -------------------------------------------------------------------------------------------------------

void Session::begin() {
  if (closing_ || !wanted_ || !client_.ready()) return;
  refused_ = false;
  constexpr auto most = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  const auto lease = static_cast<std::int64_t>(executor_.random() % most) + 1;
  client_.call(method_lease_grant, lease_grant(lease, client_.options().session_ttl.count()), client_.answer_by(),
               lifetime_.guard([this, lease, attempt = ++attempt_](const Result<std::string>& answer, TimePoint sent) {
                 if (attempt == attempt_) granted(answer, sent, lease);
               }));
}

void Session::granted(const Result<std::string>& answer, TimePoint sent, std::int64_t lease) {
  if (!answer.ok()) return no_session(answer.failure());
  const auto grant = read_lease(answer.value());
  if (!grant.ok()) return no_session(grant.failure());
  if (grant.value().id != lease || grant.value().seconds <= 0) {
    return no_session({errc::protocol, "etcd granted a different lease than the one requested"});
  }
  const Options& options = client_.options();
  client_.call(Transaction().put(session_key(options, lease), options.holder, lease), client_.answer_by(),
               lifetime_.guard([this, grant = grant.value(), sent, attempt = attempt_](const auto& made) {
                 if (attempt == attempt_) marked(made, grant, sent);
               }));
}

void Session::marked(const Result<TransactionAnswer>& answer, const LeaseAnswer& grant, TimePoint sent) {
  if (!answer.ok()) {
    over_.push_back(grant.id);
    return no_session(answer.failure());
  }
  confirmed_ = false;
  lease_ = grant.id;
  ttl_ = std::chrono::seconds(grant.seconds);
  beat_sent_ = sent;
  trouble_.clear();
  problem_ = {};
  alive_until(lease_valid_until(sent, ttl_));
  beat_later(saturating_add(sent, ttl_ / 3));
  user_.session_ready();
}

void Session::no_session(Failure why) {
  // Nobody holds a lock in it. Its lease may have expired before its key was made.
  if (why.code == errc::ambiguous || why.code == errc::lost) why.code = errc::unavailable;
  problem_ = why;
  ++attempt_;
  if (over_.size() > most_over) over_.erase(over_.begin());
  refused_ = common::is_final_refusal(why);
  if (!refused_) timer_.arm(saturating_add(executor_.now(), backoff_.next(executor_)), [this] { begin(); });
  user_.session_suspended(why);
}

// --- Keeping it alive ------------------------------------------------------------------------------------------------

void Session::beat_later(TimePoint at) {
  beating_ = false;
  timer_.arm(at, [this] { beat(); });
}

// By a stream of one message each, which needs no room at the member in between.
void Session::beat() {
  if (beating_ || lease_ == 0 || !client_.ready()) return;
  beating_ = true;
  beat_sent_ = executor_.now();
  client_.call(method_lease_keep_alive, lease_request(lease_), beat_by(),
               lifetime_.guard([this, attempt = attempt_](const Result<std::string>& answer, TimePoint) {
                 if (attempt == attempt_) kept(answer, beat_sent_);
               }),
               Client::Turn::first);
}

// There is to be time for two more members.
TimePoint Session::beat_by() const {
  return saturating_add(beat_sent_, ttl_ / 4);
}

void Session::kept(const Result<std::string>& answer, TimePoint sent) {
  if (!answer.ok()) return beat_failed(answer.failure());
  const auto lease = read_lease(answer.value());
  if (!lease.ok()) return client_.leave_member(lease.failure());
  if (lease.value().id != lease_)
    return beat_failed({errc::protocol, "a keep-alive of a different lease was answered"});
  if (lease.value().seconds <= 0) return lose("it has expired");
  confirm(lease.value(), sent);
}

void Session::beat_failed(const Failure& why) {
  if (executor_.now() >= beat_by()) {
    return client_.leave_member(
        {errc::unavailable, client_.options().endpoint() + ": no answer to a keep-alive in time"});
  }
  trouble_ = ": " + why.detail;
  beat_later(saturating_add(executor_.now(), backoff_.next(executor_)));
}

void Session::confirm(const LeaseAnswer& kept, TimePoint sent) {
  client_.call(method_transaction,
               Transaction().read({.range = {session_key(client_.options(), lease_)}, .keys_only = true}).request(),
               beat_by(), lifetime_.guard([this, kept, sent, attempt = attempt_](const auto& answer, TimePoint) {
                 if (attempt == attempt_) confirmed(answer, kept, sent);
               }),
               Client::Turn::first);
}

void Session::confirmed(const Result<std::string>& answer, const LeaseAnswer& kept, TimePoint sent) {
  if (!answer.ok()) return beat_failed(answer.failure());
  const auto read = read_transaction(answer.value(), {1});
  if (!read.ok()) return client_.leave_member(read.failure());
  if (read.value().steps.front().keys.empty()) return lose("its key no longer exists");
  if (read.value().header.term != kept.header.term) return beat_later(saturating_add(executor_.now(), soon));
  confirmed_ = true;
  trouble_.clear();
  backoff_.reset();
  beat_later(saturating_add(sent, ttl_ / 3));
  alive_until(lease_valid_until(sent, std::chrono::seconds(kept.seconds)));
  user_.session_alive(valid_until_);
}

void Session::alive_until(TimePoint valid_until) {
  valid_until_ = std::max(valid_until_, valid_until);
  deadline_timer_.arm(valid_until_, [this] {
    lose("the cluster did not answer for " +
         util::to_text(std::chrono::duration_cast<std::chrono::milliseconds>(executor_.now() - beat_sent_)) + trouble_);
  });
}

// --- The end ---------------------------------------------------------------------------------------------------------

void Session::expired(std::int64_t lease) {
  // Not from inside a call to us.
  executor_.post(lifetime_.guard([this, lease] {
    if (lease == lease_ && lease != 0) lose("it has expired");
  }));
}

void Session::lose(const std::string& why) {
  stop_attempts();
  over_.push_back(std::exchange(lease_, 0));
  valid_until_ = TimePoint::min();
  deadline_timer_.disarm();
  problem_ = {errc::unavailable, client_.options().endpoint() + ": the session is lost: " + why};
  // Not from inside a call to us; and not at once if the next one may end as soon as this one did.
  const auto pause = confirmed_ ? std::chrono::nanoseconds(0) : backoff_.next(executor_);
  timer_.arm(saturating_add(executor_.now(), pause), [this] {
    if (client_.ready()) client_ready();
  });
  user_.session_lost({errc::lost, why});
}

void Session::revoke(std::int64_t lease) {
  client_.call(method_lease_revoke, lease_request(lease), client_.answer_by(),
               lifetime_.guard([this, lease](const Result<std::string>& answer, TimePoint) {
                 const bool unknown = !answer.ok() && (answer.failure().code == errc::ambiguous ||
                                                       answer.failure().code == errc::unavailable);
                 if (unknown && over_.size() < most_over) over_.push_back(lease);
               }));
}

void Session::close(std::function<void()> done) {
  closing_ = true;
  stop_attempts();
  deadline_timer_.disarm();
  const std::int64_t lease = std::exchange(lease_, 0);
  if (lease == 0) return done();
  client_.call(method_lease_revoke, lease_request(lease), client_.answer_by(),
               [done = std::move(done)](const Result<std::string>&, TimePoint) { done(); });
}

}  // namespace dlock::etcd

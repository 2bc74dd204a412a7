#include "backends/etcd/connection/session.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "backends/common/reconnect.hpp"
#include "util/duration_text.hpp"

namespace dlock::etcd {

namespace {

// After a confirmation in a different term.
constexpr std::chrono::milliseconds soon{50};
// Leases that are not revoked expire by themselves.
constexpr std::size_t most_to_revoke = 16;

}  // namespace

Session::Session(Client& client, KeyOf key_of, User& user)
    : executor_(client.executor()),
      client_(client),
      key_of_(key_of),
      user_(user),
      problem_{errc::unavailable, client.options().endpoint() + ": not connected yet"},
      timer_(executor_),
      deadline_timer_(executor_) {}

bool Session::ready() const noexcept {
  return lease_ != 0 && client_.ready() && executor_.now() < valid_until_;
}

void Session::want() {
  client_.want();
  const bool first = !std::exchange(wanted_, true);
  if ((std::exchange(refused_, false) || first) && lease_ == 0) begin();
}

void Session::stop_requests() {
  requests_.emplace();
  timer_.disarm();
}

// --- The connection --------------------------------------------------------------------------------------------------

void Session::client_ready() {
  if (closing_) return;
  for (const std::int64_t lease : std::exchange(to_revoke_, {})) revoke(lease);
  if (lease_ == 0) return begin();
  const Lifetime::Watch life = lifetime_.watch();
  user_.session_ready();
  if (!life.over() && ready()) send_keep_alive();
}

void Session::client_down(const Failure& why, bool in_order) {
  stop_requests();
  problem_ = why;
  if (closing_ || in_order) return;
  // A different member may accept the client, which has a session to keep.
  if (lease_ != 0 && common::is_final_refusal(why)) {
    timer_.arm(saturating_add(executor_.now(), backoff_.next(executor_)), [this] { client_.want(); });
  }
  user_.session_suspended(why);
}

// --- The beginning ---------------------------------------------------------------------------------------------------

void Session::begin() {
  if (closing_ || !wanted_ || !client_.ready()) return;
  stop_requests();
  refused_ = false;
  constexpr auto most = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  const auto lease = static_cast<std::int64_t>(executor_.random() % most) + 1;
  client_.call(method_lease_grant, lease_grant(lease, client_.options().session_ttl.count()), client_.answer_by(),
               requests_->guard([this, lease](const Result<std::string>& answer, TimePoint sent) {
                 granted(read_answer(answer, read_lease), sent, lease);
               }));
}

void Session::granted(const Result<LeaseAnswer>& answer, TimePoint sent, std::int64_t lease) {
  if (!answer.ok()) return no_session(answer.failure());
  const LeaseAnswer& grant = answer.value();
  if (grant.id != lease || grant.seconds <= 0) {
    return no_session({errc::protocol, "etcd granted a different lease than the one requested"});
  }
  const Options& options = client_.options();
  client_.call(Transaction().put(key_of_(options, lease), options.holder, lease), client_.answer_by(),
               requests_->guard([this, grant, sent](const auto& created) { key_created(created, grant, sent); }));
}

void Session::key_created(const Result<TransactionAnswer>& answer, const LeaseAnswer& grant, TimePoint sent) {
  if (!answer.ok()) {
    to_revoke_.push_back(grant.id);
    return no_session(answer.failure());
  }
  was_confirmed_ = false;
  lease_ = grant.id;
  ttl_ = std::chrono::seconds(grant.seconds);
  keep_alive_sent_ = sent;
  last_error_.clear();
  problem_ = {};
  alive_until(lease_valid_until(sent, ttl_));
  keep_alive_at(saturating_add(sent, ttl_ / 3));
  user_.session_ready();
}

void Session::no_session(Failure why) {
  // No lock depends on that lease. It may have expired before its key was created.
  if (why.code == errc::ambiguous || why.code == errc::lost) why.code = errc::unavailable;
  problem_ = why;
  stop_requests();
  if (to_revoke_.size() > most_to_revoke) to_revoke_.erase(to_revoke_.begin());
  refused_ = common::is_final_refusal(why);
  if (!refused_) timer_.arm(saturating_add(executor_.now(), backoff_.next(executor_)), [this] { begin(); });
  user_.session_suspended(why);
}

// --- Keep-alives -----------------------------------------------------------------------------------------------------

void Session::keep_alive_at(TimePoint at) {
  timer_.arm(at, [this] { send_keep_alive(); });
}

// Each keep-alive is a call, because a stream of them would take one of the member's concurrent calls for good.
void Session::send_keep_alive() {
  keep_alive_sent_ = executor_.now();
  client_.call(method_lease_keep_alive, lease_request(lease_), keep_alive_by(),
               requests_->guard([this](const Result<std::string>& answer, TimePoint) {
                 kept_alive(read_answer(answer, read_lease));
               }),
               Client::Turn::first);
}

// Leaves time for two more members.
TimePoint Session::keep_alive_by() const {
  return saturating_add(keep_alive_sent_, ttl_ / 4);
}

void Session::kept_alive(const Result<LeaseAnswer>& answer) {
  if (!answer.ok()) return keep_alive_failed(answer.failure());
  if (answer.value().id != lease_) {
    return keep_alive_failed({errc::protocol, "a keep-alive of a different lease was answered"});
  }
  if (answer.value().seconds <= 0) return lose("it has expired");
  client_.call(Transaction().read({.range = {key_of_(client_.options(), lease_)}, .keys_only = true}), keep_alive_by(),
               requests_->guard([this, kept = answer.value()](const auto& read) { confirmed(read, kept); }),
               Client::Turn::first);
}

void Session::confirmed(const Result<TransactionAnswer>& answer, const LeaseAnswer& kept) {
  if (!answer.ok()) return keep_alive_failed(answer.failure());
  if (answer.value().steps.front().keys.empty()) return lose("its key no longer exists");
  if (answer.value().header.term != kept.header.term) return keep_alive_at(saturating_add(executor_.now(), soon));
  was_confirmed_ = true;
  last_error_.clear();
  backoff_.reset();
  keep_alive_at(saturating_add(keep_alive_sent_, ttl_ / 3));
  alive_until(lease_valid_until(keep_alive_sent_, std::chrono::seconds(kept.seconds)));
  user_.session_alive(valid_until_);
}

void Session::keep_alive_failed(const Failure& why) {
  // A different member may give an answer that can be read.
  if (why.code == errc::protocol) return client_.leave_member({errc::unavailable, why.detail});
  if (executor_.now() >= keep_alive_by()) {
    return client_.leave_member(
        {errc::unavailable, client_.options().endpoint() + ": no answer to a keep-alive in time"});
  }
  last_error_ = ": " + why.detail;
  keep_alive_at(saturating_add(executor_.now(), backoff_.next(executor_)));
}

void Session::alive_until(TimePoint valid_until) {
  valid_until_ = std::max(valid_until_, valid_until);
  deadline_timer_.arm(valid_until_, [this] {
    const auto silence = std::chrono::duration_cast<std::chrono::milliseconds>(executor_.now() - keep_alive_sent_);
    lose("the cluster did not answer for " + util::to_text(silence) + last_error_);
  });
}

// --- The end ---------------------------------------------------------------------------------------------------------

void Session::expired(std::int64_t lease) {
  executor_.post(lifetime_.guard([this, lease] {
    if (lease == lease_ && lease != 0) lose("it has expired");
  }));
}

void Session::lose(const std::string& why) {
  stop_requests();
  to_revoke_.push_back(std::exchange(lease_, 0));
  valid_until_ = TimePoint::min();
  deadline_timer_.disarm();
  problem_ = {errc::unavailable, client_.options().endpoint() + ": the session is lost: " + why};
  // Begins in a later task, and after a pause if the next session may end as soon as this one.
  const auto pause = was_confirmed_ ? std::chrono::nanoseconds(0) : backoff_.next(executor_);
  timer_.arm(saturating_add(executor_.now(), pause), [this] {
    if (client_.ready()) client_ready();
  });
  user_.session_lost({errc::lost, why});
}

void Session::revoke(std::int64_t lease) {
  client_.call(method_lease_revoke, lease_request(lease), client_.answer_by(),
               lifetime_.guard([this, lease](const Result<std::string>& answer, TimePoint) {
                 const bool unknown = !answer.ok() && !common::is_final_refusal(answer.failure());
                 if (unknown && to_revoke_.size() < most_to_revoke) to_revoke_.push_back(lease);
               }));
}

void Session::close(std::function<void()> done) {
  closing_ = true;
  stop_requests();
  deadline_timer_.disarm();
  const std::int64_t lease = std::exchange(lease_, 0);
  if (lease == 0) return done();
  client_.call(method_lease_revoke, lease_request(lease), client_.answer_by(),
               [done = std::move(done)](const Result<std::string>&, TimePoint) { done(); });
}

}  // namespace dlock::etcd

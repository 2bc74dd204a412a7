#include "backends/etcd/locks/all_or_none.hpp"

#include <utility>

#include "backends/etcd/locks/keys.hpp"

namespace dlock::etcd {

AllOrNone::AllOrNone(Queue& queue, std::vector<LockRequest> requests, GrantSink& sink)
    : queue_(queue), requests_(std::move(requests)), sink_(sink) {}

AllOrNone::~AllOrNone() {
  give_up(0, true);
}

void AllOrNone::start() {
  const Options& options = queue_.client_.options();
  lease_ = queue_.session_.lease();
  asked_as_ = ++queue_.last_request_;
  const KeyRange given_up = gone_since(options, lease_, asked_as_);
  Transaction transaction;
  transaction.if_absent(given_up).else_read({.range = given_up, .limit = 1, .keys_only = true});
  for (const LockRequest& request : requests_) {
    const Place place = place_of(options, request);
    keys_.push_back(queue_.new_key(place));
    transaction.if_absent(place.before).put(keys_.back(), request.holder, lease_);
  }
  // Not with others: who knows which of these locks they are about.
  queue_.client_.call(transaction, queue_.client_.answer_by(),
                      lifetime_.guard([this](const Result<TransactionAnswer>& answer) { answered(answer); }));
}

void AllOrNone::answered(const Result<TransactionAnswer>& answer) {
  if (answer.ok() && answer.value().held) return grant(answer.value().header.revision);
  if (answer.ok()) {
    give_up(0, false);
    if (answer.value().steps.front().keys.empty()) return sink_.busy();
    // A later request was given up, but not this one.
    if (queue_.session_.ready()) return start();
    return sink_.failed({errc::unavailable, "the session broke before the locks were granted"});
  }
  Failure why = answer.failure();
  give_up(0, why.code == errc::ambiguous || why.code == errc::protocol);
  if (why.code == errc::lost) {
    why.code = errc::unavailable;  // none was had yet
    queue_.session_.expired(lease_);
  }
  sink_.failed(std::move(why));
}

void AllOrNone::grant(std::int64_t revision) {
  const Session& session = queue_.session_;
  const bool stands = session.ready() && is_of_lease(keys_.front(), session.lease()) &&
                      !may_be_over(session.valid_until(), queue_.host_.executor().now());
  if (!stands) {
    give_up(revision, false);
    return sink_.failed({errc::unavailable, "the session broke while the locks were granted"});
  }
  const TimePoint valid_until = session.valid_until();
  const std::vector<std::string> keys = std::exchange(keys_, {});
  std::vector<Grant> grants;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    grants.push_back({.name = requests_[i].name,
                      .owner = requests_[i].owner,
                      .token = FencingToken(static_cast<std::uint64_t>(revision)),
                      .valid_until = valid_until,
                      .lease = session.ttl()});
    queue_.holds_.add(grants.back(), keys[i]);
  }
  for (Grant& each : grants) sink_.granted(std::move(each));
}

void AllOrNone::give_up(std::int64_t created, bool doubt) {
  const std::vector<std::string> keys = std::exchange(keys_, {});
  for (std::size_t i = 0; i < keys.size(); ++i) {
    queue_.give_up(keys[i], requests_[i].owner, created, doubt ? asked_as_ : 0);
  }
}

}  // namespace dlock::etcd

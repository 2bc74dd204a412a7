#include "backends/etcd/locks/queue_contention.hpp"

#include <algorithm>
#include <utility>

#include "backends/common/reconnect.hpp"
#include "util/names.hpp"

namespace dlock::etcd {

namespace {

using std::chrono::seconds;

// Servers before 3.4.36 and 3.5.18 may lose an event: whether one was missed is asked rarely, at random, so that a long
// queue does not ask all at once.
constexpr std::chrono::nanoseconds check_min = seconds(20);
constexpr std::chrono::nanoseconds check_max = seconds(40);

}  // namespace

QueueContention::QueueContention(Queue& queue, std::uint64_t id, const LockRequest& request, GrantSink& sink)
    : queue_(queue),
      id_(id),
      request_(request),
      sink_(sink),
      place_(place_of(queue.client_.options(), request)),
      in_one_request_(!request.wait && place_.capacity == 1),
      timer_(queue.host_.executor()) {}

QueueContention::~QueueContention() {
  give_up();
  queue_.contentions_.erase(id_);
}

void QueueContention::start() {
  if (queue_.session_.ready()) return resume();
  wait_for_session();
  // A waiter is told; a final reason may be out of date, and is tried again.
  if (queue_.trouble_.code && request_.wait) sink_.unreachable(queue_.trouble_);
}

// --- The session -----------------------------------------------------------------------------------------------------

void QueueContention::wait_for_session() {
  leave(Stage::unready);
  queue_.session_.want();
  if (request_.wait) return;
  // A try ends with the first trouble it reports. The connection may be back in a moment, so it reports late.
  const auto patience = queue_.client_.options().response_timeout / 4 * 3;
  timer_.arm(saturating_add(queue_.host_.executor().now(), patience),
             [this] { sink_.unreachable(queue_.session_.problem()); });
}

void QueueContention::session_ready() {
  if (stage_ == Stage::unready || stage_ == Stage::pausing) resume();
}

void QueueContention::session_suspended(const Failure& why) {
  if (stage_ == Stage::over) return;
  if (common::is_final_refusal(why)) return fail(why);
  if (request_.wait) sink_.unreachable(why);
}

// With it went the key, and whatever may come later of a request that was not answered.
void QueueContention::session_lost() {
  if (stage_ == Stage::over) return;
  key_.clear();
  state_ = Key::none;
  doubt_ = false;
  wait_for_session();
}

void QueueContention::resume() {
  if (!queue_.session_.ready()) return wait_for_session();
  if (state_ == Key::there) return look();
  if (!request_.wait && !in_one_request_ && state_ == Key::none) return look_first();
  enqueue();
}

// --- Getting a place -------------------------------------------------------------------------------------------------

Read QueueContention::nearest_before(std::size_t limit) const {
  return {.range = place_.before,
          .limit = static_cast<std::int64_t>(limit),
          .order = Order::newest_first,
          .keys_only = true};
}

void QueueContention::ask(Transaction transaction, bool makes, void (QueueContention::*f)(const TransactionAnswer&)) {
  leave(Stage::asking);
  queue_.batches_.submit(std::move(transaction), makes ? std::string_view(place_.lock) : std::string_view(),
                         queue_.client_.answer_by(),
                         lifetime_.guard([this, round = round_, makes, f](const Result<TransactionAnswer>& answer) {
                           if (round != round_) return;
                           if (!answer.ok()) return trouble(answer.failure(), makes);
                           backoff_.reset();
                           (this->*f)(answer.value());
                         }));
}

void QueueContention::look_first() {
  Transaction transaction;
  transaction.read({.range = place_.before, .limit = static_cast<std::int64_t>(place_.capacity), .keys_only = true});
  ask(std::move(transaction), false, &QueueContention::looked_first);
}

void QueueContention::looked_first(const TransactionAnswer& answer) {
  if (answer.steps.front().keys.size() >= place_.capacity) return busy();
  enqueue();
}

void QueueContention::enqueue() {
  if (key_.empty()) key_ = queue_.new_key(place_);
  asked_as_ = ++queue_.last_request_;
  const KeyRange given_up = gone_since(queue_.client_.options(), queue_.session_.lease(), asked_as_);
  Transaction transaction;
  transaction.if_absent({key_}).if_absent(given_up);
  for (const KeyRange& each : place_.barred) transaction.if_absent(each);
  if (in_one_request_) transaction.if_absent(place_.before);
  transaction.put(key_, request_.holder, queue_.session_.lease());
  if (!in_one_request_) {
    transaction.read(nearest_before(place_.capacity + 2));  // our own may be among them; and one more, as in look()
  }
  transaction.else_read({.range = {key_}, .keys_only = true});
  transaction.else_read({.range = given_up, .limit = 1, .keys_only = true});
  for (const KeyRange& each : place_.barred) transaction.else_read({.range = each, .limit = 1, .keys_only = true});
  state_ = Key::asked_for;
  ask(std::move(transaction), true, &QueueContention::enqueued);
}

void QueueContention::enqueued(const TransactionAnswer& answer) {
  if (!answer.held) return not_enqueued(answer);
  state_ = Key::there;
  created_ = answer.header.revision;
  if (in_one_request_) return grant();
  std::vector<KeyValue> before = answer.steps.back().keys;
  std::erase_if(before, [this](const KeyValue& each) { return each.key == key_; });
  judge(std::move(before), answer.header.revision);
}

void QueueContention::not_enqueued(const TransactionAnswer& answer) {
  if (!answer.steps.front().keys.empty()) {
    state_ = Key::there;  // by an earlier request, which was not answered
    created_ = answer.steps.front().keys.front().created;
    waited_ = true;
    return look();
  }
  state_ = Key::none;
  if (!answer.steps[1].keys.empty()) return resume();  // a later request was given up, but not this one
  const auto& options = queue_.client_.options();
  const std::size_t prefix = kind_prefix(options, request_.kind).size();
  for (std::size_t i = 2; i < answer.steps.size(); ++i) {
    if (answer.steps[i].keys.empty()) continue;
    const std::string& other = answer.steps[i].keys.front().key;
    const auto parts =
        parse_key(options, request_.kind, std::string_view(other).substr(std::min(prefix, other.size())));
    if (parts) return fail(other_permits(request_, parts->permits));
    return fail({errc::protocol, "key " + util::quoted(other) + " does not belong to a semaphore"});
  }
  busy();
}

// --- In the queue ----------------------------------------------------------------------------------------------------

void QueueContention::look() {
  if (!queue_.session_.ready()) return wait_for_session();
  news_ = false;
  Read before = nearest_before(place_.capacity + 1);  // whether we are the first in line for a semaphore
  before.created_before = created_;
  Transaction transaction;
  transaction.read({.range = {key_}, .keys_only = true}).read(before);
  ask(std::move(transaction), false, &QueueContention::looked);
}

void QueueContention::looked(const TransactionAnswer& answer) {
  const auto& own = answer.steps.front().keys;
  if (own.empty() || own.front().created != created_) {
    state_ = Key::none;  // it was removed
    return resume();
  }
  judge(answer.steps.back().keys, answer.header.revision);
}

void QueueContention::judge(std::vector<KeyValue> before, std::int64_t revision) {
  if (before.size() < place_.capacity) return waited_ && place_.capacity > 1 ? announce() : grant();
  if (!request_.wait) return busy();
  // The first in line for a semaphore gets what any of those before it gives back.
  const bool any = place_.capacity > 1 && before.size() == place_.capacity;
  looked_at_ = revision;
  watch(any ? place_.before : KeyRange{before.front().key});
}

void QueueContention::watch(const KeyRange& range) {
  leave(Stage::watching);
  waited_ = true;
  if (!watch_ || range != watched_) {
    watched_ = range;
    // Of a semaphore: whether the one before us goes, or enters.
    const bool puts = place_.capacity > 1 && range.end.empty();
    watch_ =
        queue_.watches_.watch(range, puts, [this](Watches::News news, std::int64_t revision) { told(news, revision); });
  } else if (news_) {
    return look();
  }
  Executor& executor = queue_.host_.executor();
  timer_.arm(saturating_add(executor.now(), random_between(check_min, check_max, executor)), [this] { look(); });
  sink_.busy();
}

void QueueContention::told(Watches::News news, std::int64_t revision) {
  // What happened between the look and the watch is not told.
  if (news == Watches::News::standing && revision <= looked_at_) return;
  if (news == Watches::News::over) watch_.reset();
  if (stage_ == Stage::watching) return look();
  news_ = true;  // an answer is waited for, and may be older
}

// The one behind us watches our key, and is to know that it is the first in line now.
void QueueContention::announce() {
  Transaction transaction;
  transaction.if_created({key_}, created_).put(key_, request_.holder, queue_.session_.lease());
  ask(std::move(transaction), false, &QueueContention::announced);
}

void QueueContention::announced(const TransactionAnswer& answer) {
  if (answer.held) return grant();
  state_ = Key::none;  // it is gone
  resume();
}

// --- The end ---------------------------------------------------------------------------------------------------------

void QueueContention::grant() {
  const Session& session = queue_.session_;
  if (!session.ready()) return wait_for_session();
  if (may_be_over(session.valid_until(), queue_.host_.executor().now())) return retry_later();
  const Grant grant{.name = request_.name,
                    .owner = request_.owner,
                    .token = FencingToken(static_cast<std::uint64_t>(created_)),
                    .valid_until = session.valid_until(),
                    .lease = session.ttl(),
                    .kind = request_.kind,
                    .mode = request_.mode};
  if (doubt_) queue_.doubtful_[request_.owner] = asked_as_;
  queue_.holds_.add(grant, std::exchange(key_, {}));
  leave(Stage::over);
  sink_.granted(grant);
}

void QueueContention::busy() {
  give_up();
  leave(Stage::over);
  sink_.busy();
}

void QueueContention::fail(Failure why) {
  give_up();
  leave(Stage::over);
  sink_.failed(std::move(why));
}

void QueueContention::give_up() {
  const std::string key = std::exchange(key_, {});
  if (key.empty()) return;
  const bool doubt = doubt_ || state_ == Key::asked_for;
  queue_.give_up(key, request_.owner, state_ == Key::there ? created_ : 0, doubt ? asked_as_ : 0);
}

void QueueContention::trouble(const Failure& why, bool made) {
  if (made) {
    state_ = Key::none;
    doubt_ = doubt_ || why.code == errc::ambiguous || why.code == errc::protocol;
  }
  if (why.code == errc::lost) return queue_.session_.expired(queue_.session_.lease());  // which leads to another
  if (common::is_final_refusal(why)) return fail(why);
  if (!request_.wait) return fail(why);
  retry_later();
  sink_.unreachable(why);
}

void QueueContention::retry_later() {
  leave(Stage::pausing);
  Executor& executor = queue_.host_.executor();
  timer_.arm(saturating_add(executor.now(), backoff_.next(executor)), [this] { resume(); });
}

void QueueContention::leave(Stage stage) {
  ++round_;
  stage_ = stage;
  timer_.disarm();
  if (stage != Stage::asking && stage != Stage::watching) watch_.reset();
}

}  // namespace dlock::etcd
